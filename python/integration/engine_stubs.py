"""Modules of an engine's wheel without the engine: what a script names is real, all else are stand-ins."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import zipimport
from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock


class Wheel(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a package out of its wheel.

    Args:
        path: the wheel.
        package: the package in it.
        real: modules whose code is run; packages above them are empty.
        missing: other packages that are not installed, and only imported by them.
    """

    def __init__(
        self, path: Path, package: str, real: Collection[str], missing: Collection[str] = ()
    ) -> None:
        self._files = zipimport.zipimporter(str(path))
        self._path = path
        self._package = package
        self._real = frozenset(real)
        self._missing = frozenset(missing)
        self.stands_in: set[str] = set()

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        root = name.partition(".")[0]
        if root != self._package and root not in self._missing:
            return None
        if name in self._real:
            folder = self._path / name.replace(".", "/")
            found = zipimport.zipimporter(str(folder.parent)).find_spec(name)
            assert found is not None, name
            return found
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        self.stands_in.add(spec.name)
        return _Anything(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Anything(ModuleType):
    """A module that has whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name[:1].isupper():
            # A class may be a base; nothing that is real is an instance of it.
            made: Any = type(name, () if name.endswith("Mixin") else (_Mock,), {})
        else:
            made = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made


class _Mock(MagicMock):
    """Takes any arguments."""

    def __init__(self, *_args: Any, **_named: Any) -> None:
        super().__init__()
