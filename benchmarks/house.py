"""Counts of the source: lines, files, circles of imports, ignored arrows, long signatures, participles, repeated names.

    python benchmarks/house.py [--circles] [--arrows] [--typing]      or: make house

Each count has a limit, which a test holds: today's value, lowered whenever the count falls. Counted as an import is
every one that runs, those inside functions with the others, and modules that `later` or a lazy package name as text.
A name that a lazy package hands out is an import of the module that defines it. Imports for type checkers alone are no
arrows; those of them that would close a circle are counted apart.
"""

from __future__ import annotations

import argparse
import ast
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "sfumato"
MOST_PARAMETERS = 12
PARTICIPLES = frozenset({"asked", "drawn", "found", "held", "kept", "made", "said", "seen", "there", "told"})

# What was counted, with a little room for work on the way.
LIMITS = {
    "lines": 88_970,
    "lines of the core": 57_330,
    "files": 439,
    "circles of files": 0,
    "files in circles": 0,
    "circles with imports for type checkers": 0,
    "ignored arrows": 0,
    f"functions of more than {MOST_PARAMETERS} parameters": 0,
    "functions with a participle as a local": 0,
    "repeated basenames": 15,
    "repeated class names": 12,
}
GOALS = {
    "lines": 55_000,
    "lines of the core": 44_000,
    "files": 270,
    "circles of files": 0,
    "files in circles": 0,
    "circles with imports for type checkers": 0,
    "ignored arrows": 0,
    f"functions of more than {MOST_PARAMETERS} parameters": 0,
    "functions with a participle as a local": 0,
    "repeated basenames": 12,
    "repeated class names": 0,
}
# What a certificate rests on, and what is fitted, sampled and asked.
CORE = frozenset(
    {
        "_lazy", "_version", "__main__", "cards", "columns", "entry_points", "errors", "extras", "fitting", "front",
        "inference", "io", "lenses", "maths", "measurements", "mechanisms", "methods", "models", "plugins", "privacy",
        "records", "release", "release_front", "rules", "schema", "two_stages", "verification",
    }
)  # fmt: skip
FAMILIES = tuple(
    f"{PACKAGE}.{name}"
    for name in (
        "methods.dpgm", "methods.dpmix", "methods.images", "methods.mixtures", "methods.nets",
        "methods.p3gm", "models.images", "models.mixed", "models.mixed_training", "models.mixtures", "models.nets",
    )
)  # fmt: skip

Graph = Mapping[str, frozenset[str]]


@dataclass
class _Imports:
    """Modules that one file imports: when it runs, and for type checkers alone."""

    running: set[str] = field(default_factory=set)
    typing: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class House:
    """The source, parsed.

    Attributes:
        files: module name → its path.
        trees: module name → its syntax tree.
        texts: module name → its text.
        stubs: lazy package → the syntax tree of its stub, whose imports are its own.
    """

    files: Mapping[str, Path]
    trees: Mapping[str, ast.Module]
    texts: Mapping[str, str]
    stubs: Mapping[str, ast.Module]

    @classmethod
    def read(cls, folder: Path = ROOT / "src" / PACKAGE) -> House:
        """The files of a package."""
        paths = sorted(folder.rglob("*.py"))
        files = {".".join((PACKAGE, *_parts(path.relative_to(folder)))): path for path in paths}
        texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
        stubs = {
            name: stub.read_text(encoding="utf-8") for name, path in files.items() if (stub := _stub(path)).exists()
        }
        trees = {name: ast.parse(text) for name, text in texts.items()}
        return cls(files, trees, texts, {name: ast.parse(text) for name, text in stubs.items()})

    @cached_property
    def _lazy_homes(self) -> Mapping[str, Mapping[str, str]]:
        """Lazy package → public name → the module that defines it."""
        return {
            name: {
                alias.name: str(node.module)
                for node in stub.body
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            for name, stub in self.stubs.items()
        }

    @cached_property
    def imports(self) -> Mapping[str, _Imports]:
        """Module → what it imports."""
        found = {name: _Imports() for name in self.files}
        for name, tree in self.trees.items():
            _walk(tree, found[name], self, typing=False)
            if name in self.stubs:
                _walk(self.stubs[name], found[name], self, typing=False)
            found[name].running.discard(name)
            found[name].typing.discard(name)
        return found

    def resolved(self, module: str, name: str) -> str:
        """The module that `from module import name` imports from."""
        if f"{module}.{name}" in self.files:
            return f"{module}.{name}"
        return self._lazy_homes.get(module, {}).get(name, module)

    def graph(self, *, typing: bool = False) -> Graph:
        """Module → modules of the package that it imports, perhaps with those for type checkers alone."""
        return {
            name: frozenset(one.running | one.typing if typing else one.running) & self.files.keys()
            for name, one in self.imports.items()
        }

    def counts(self) -> dict[str, int]:
        """Every count, by the names of the limits."""
        circles = circles_of(self.graph())
        basenames = Counter(path.stem for path in self.files.values() if path.stem != "__init__")
        classes = Counter(
            node.name for tree in self.trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
        )
        functions = [node for tree in self.trees.values() for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
        lines = {name: text.count("\n") for name, text in self.texts.items()}
        return {
            "lines": sum(lines.values()),
            "lines of the core": sum(n for name, n in lines.items() if _in_core(name)),
            "files": len(self.files),
            "circles of files": len(circles),
            "files in circles": sum(map(len, circles)),
            "circles with imports for type checkers": len(circles_of(self.graph(typing=True))),
            "ignored arrows": len(ignored_arrows()),
            f"functions of more than {MOST_PARAMETERS} parameters": sum(
                n_parameters(function) > MOST_PARAMETERS for function in functions
            ),
            "functions with a participle as a local": sum(bool(participles(function)) for function in functions),
            "repeated basenames": sum(count > 1 for count in basenames.values()),
            "repeated class names": sum(count > 1 for name, count in classes.items() if not name.startswith("_")),
        }


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _parts(path: Path) -> tuple[str, ...]:
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _in_core(name: str) -> bool:
    outside = any(name == family or name.startswith(f"{family}.") for family in FAMILIES)
    return not outside and (name == PACKAGE or name.split(".")[1] in CORE)


def _called(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", None)


def _stub(path: Path) -> Path:
    return path.with_suffix(".pyi")


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _walk(node: ast.AST, into: _Imports, house: House, *, typing: bool) -> None:
    if isinstance(node, ast.If) and getattr(node.test, "id", getattr(node.test, "attr", None)) == "TYPE_CHECKING":
        for child in node.body:
            _walk(child, into, house, typing=True)
        for child in node.orelse:
            _walk(child, into, house, typing=typing)
        return
    (into.typing if typing else into.running).update(_targets(node, house))
    for child in ast.iter_child_nodes(node):
        _walk(child, into, house, typing=typing)


def _targets(node: ast.AST, house: House) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (house.resolved(node.module, alias.name) for alias in node.names)
    elif _called(node) in ("later", "import_module") and isinstance(node, ast.Call) and node.args:
        yield from filter(None, [_text(node.args[0])])
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == PACKAGE:
        yield house.resolved(PACKAGE, node.attr)  # `import sfumato` and later `sfumato.fit`
    elif isinstance(node, ast.Dict):
        yield from (text for value in node.values if (text := _text(value)) in house.files and text is not None)


def circles_of(graph: Graph) -> list[list[str]]:
    """Strongly connected components of more than one module, the largest first (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def close(name: str) -> None:
        members = stack[stack.index(name) :]
        del stack[-len(members) :]
        low.update(dict.fromkeys(members, len(graph)))  # done: they pull nobody down
        if len(members) > 1:
            circles.append(sorted(members))

    for root in sorted(graph):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        path = [(root, iter(sorted(graph[root])))]
        while path:
            name, targets = path[-1]
            target = next(targets, None)
            if target is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[name])
                if low[name] == index[name]:
                    close(name)
            elif target not in index:
                index[target] = low[target] = len(index)
                stack.append(target)
                path.append((target, iter(sorted(graph[target]))))
            else:
                low[name] = min(low[name], low[target])
    return sorted(circles, key=lambda circle: (-len(circle), circle))


def ignored_arrows(path: Path = ROOT / "pyproject.toml") -> list[str]:
    """Arrows from the package into itself that an import contract looks away from."""
    contracts = tomllib.loads(path.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    arrows = [arrow for contract in contracts for arrow in contract.get("ignore_imports", ())]
    return [arrow for arrow in arrows if arrow.split(" -> ")[1].split(".")[0] == PACKAGE]


def n_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters by name, without `self` and `cls`."""
    named = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    return sum(argument.arg not in ("self", "cls") for argument in named)


def participles(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Parameters and locals of a function, not of those inside it, that a participle names."""
    names = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if not isinstance(node, _FUNCTIONS):
            pending.extend(ast.iter_child_nodes(node))
    return names & PARTICIPLES


def above(counts: Mapping[str, int], limits: Mapping[str, int] = LIMITS) -> dict[str, int]:
    """Counts that are above their limit."""
    return {name: count for name, count in counts.items() if count > limits[name]}


def _arrows(graph: Graph, members: Iterable[str]) -> Iterator[str]:
    inside = frozenset(members)
    for name in sorted(inside):
        for target in sorted(graph[name] & inside):
            yield f"{name} -> {target}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--circles", action="store_true", help="name the files of each circle")
    parser.add_argument("--arrows", action="store_true", help="name the imports within each circle")
    parser.add_argument("--typing", action="store_true", help="count imports for type checkers in circles and arrows")
    arguments = parser.parse_args()
    house = House.read()
    counts = house.counts()
    print(f"{'':<52}{'now':>8}{'limit':>8}{'goal':>8}")
    for name, count in counts.items():
        print(f"{name:<52}{count:>8,}{LIMITS[name]:>8,}{GOALS[name]:>8,}")
    graph = house.graph(typing=arguments.typing)
    for circle in circles_of(graph) if arguments.circles or arguments.arrows else ():
        by_folder: dict[str, list[str]] = defaultdict(list)
        for member in circle:
            by_folder[member.rpartition(".")[0]].append(member.rpartition(".")[2])
        print(f"\n{len(circle)} files: " + "; ".join(f"{f}: {', '.join(names)}" for f, names in by_folder.items()))
        print(*(_arrows(graph, circle) if arguments.arrows else ()), sep="\n")
    if above(counts):
        raise SystemExit(f"Expected no count above its limit, got {above(counts)}.")


if __name__ == "__main__":
    main()
