"""Every workload in every engine, side by side: `python benchmarks/run.py`

With words, only the workloads whose names begin with one of them: `python benchmarks/run.py M "B add"`.
Needs the extra `bench`. Prints a Markdown table a workload; the first engine that can do it is what the others are
compared with.
"""

import sys

from timing import compare, serve
from workloads import SMALL, WORKLOADS

SECONDS = 8.0  # a workload


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve(WORKLOADS[sys.argv[2]][sys.argv[3]])
        return
    for word in sys.argv[1:]:
        if not any(workload.startswith(word) for workload in WORKLOADS):
            raise SystemExit(f"No workload's name begins with {word!r}. There are: {', '.join(WORKLOADS)}")
    for workload, makers in WORKLOADS.items():
        if sys.argv[1:] and not any(workload.startswith(word) for word in sys.argv[1:]):
            continue
        for kept in (False, True) if workload[0] in "MTI" else (False,):
            engines = compare(workload, list(makers), SECONDS, __file__, kept)
            unit, factor = ("us", 1e6 / SMALL) if workload.startswith("B") else ("ms", 1e3)
            base = next((engine for engine in engines if not engine.problem), engines[0])
            print(f"\n**{workload}**" + (", freed memory kept" if kept else ""))
            print(f"\n| engine | {unit} | times {base.name} | loss |\n|---|---|---|---|")
            for engine in engines:
                if engine.problem:
                    print(f"| {engine.name} | cannot: {engine.problem} | | |")
                else:
                    ratio = engine.ratio_to(base)
                    print(f"| {engine.name} | {engine.median * factor:.3f} | {ratio:.2f} | {engine.loss:.6f} |")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
