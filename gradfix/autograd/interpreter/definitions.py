"""Definitions, imports, and the statements that leave a block: return, break, continue, raise."""

from __future__ import annotations

import ast

from gradfix.autograd import imports
from gradfix.autograd.run import BREAK, CONTINUE, STOP, ControlFlow, Return, Run, expression, statement
from gradfix.autograd.semantics.functions import decorate
from gradfix.autograd.semantics.names import canonical
from gradfix.autograd.values import NONE, Class, Frame, Function, ImportedName, Value


@statement(ast.Return)
def _return(run: Run, node: ast.Return, frame: Frame) -> ControlFlow:
    value = NONE if node.value is None else run.evaluate(node.value, frame)
    run.returned_last = node
    return Return(value)


@statement(ast.Raise)
def _raise(run: Run, node: ast.Raise, frame: Frame) -> ControlFlow:
    run.turned_back()
    return STOP


@statement(ast.Assert)
def _assert(run: Run, node: ast.Assert, frame: Frame) -> ControlFlow:
    # Written to end here: ``assert 0, "unknown kind of loss"``.
    if isinstance(node.test, ast.Constant) and not node.test.value:
        run.turned_back()
        return STOP
    return None


@statement(ast.FunctionDef, ast.AsyncFunctionDef)
def _function(run: Run, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> ControlFlow:
    function: Value = Function(node, frame)
    for decorator in reversed(node.decorator_list):
        function = decorate(run, function, decorator, frame)
    frame.binding_frame(node.name).variables[node.name] = function
    return None


@statement(ast.ClassDef)
def _class(run: Run, node: ast.ClassDef, frame: Frame) -> ControlFlow:
    bases = [run.evaluate(b, frame) for b in node.bases]
    cls = Class(node, bases, frame)
    body = Frame(frame, None)
    run.execute_block(node.body, body)
    cls.attributes = body.variables
    for value in cls.attributes.values():
        for function in (value, getattr(value, "function", None)):
            if isinstance(function, Function):
                function.owner = cls
                function.frame = frame
    frame.variables[node.name] = cls
    return None


@statement(ast.Import)
def _import(run: Run, node: ast.Import, frame: Frame) -> ControlFlow:
    origin = imports.origin_of(frame)
    for alias in node.names:
        module = alias.name if alias.asname else alias.name.split(".", 1)[0]
        path = imports.locate(module, origin)
        value: Value | None = None
        if path is not None:
            near = frame in (run.globals, run.top)
            value = imports.namespace(run, path) if near else imports.Lazy(module, "", origin)
        elif module != alias.name:
            value = imports.outermost(alias.name, origin)
        frame.variables[alias.asname or module] = ImportedName(module) if value is None else value
    return None


@statement(ast.ImportFrom)
def _import_from(run: Run, node: ast.ImportFrom, frame: Frame) -> ControlFlow:
    module = "." * node.level + (node.module or "")
    origin = imports.origin_of(frame)
    path = imports.locate(module, origin)
    local = path is not None or (node.level and not node.module)
    # Only what this very file imports can make its own lines relevant.
    eager = path is not None and frame is run.globals and imports.trains(path)
    for alias in node.names:
        if alias.name == "*" and not local:
            run.starred.append(module)
            continue
        if local and alias.name == "*":
            held = imports.load(run, path or "")
            if held is not None:
                frame.variables.update(held.variables)
            continue
        if local and not eager:
            frame.variables[alias.asname or alias.name] = imports.Lazy(module, alias.name, origin)
            continue
        inner = None if local else imports.locate(f"{module}.{alias.name}", origin)
        if inner is not None and not (frame is run.globals and imports.trains(inner)):
            frame.variables[alias.asname or alias.name] = imports.Lazy(f"{module}.{alias.name}", "", origin)
            continue
        value = imports.member(run, module, alias.name, origin) if local or inner is not None else None
        if value is not None:
            frame.variables[alias.asname or alias.name] = value
            if isinstance(value, Function):
                run.relevance.mention(alias.asname or alias.name, value.node)
            continue
        frame.variables[alias.asname or alias.name] = ImportedName(canonical(f"{module}.{alias.name}"))
    return None


@statement(ast.Global)
def _global(run: Run, node: ast.Global, frame: Frame) -> ControlFlow:
    for name in node.names:
        frame.declare(name, run.globals)
    return None


@statement(ast.Nonlocal)
def _nonlocal(run: Run, node: ast.Nonlocal, frame: Frame) -> ControlFlow:
    for name in node.names:
        at = frame.parent
        while at is not None:
            if name in at.variables:
                frame.declare(name, at)
                break
            at = at.parent
    return None


@statement(ast.Break)
def _break(run: Run, node: ast.Break, frame: Frame) -> ControlFlow:
    return BREAK


@statement(ast.Continue)
def _continue(run: Run, node: ast.Continue, frame: Frame) -> ControlFlow:
    return CONTINUE


@expression(ast.Lambda)
def _lambda(run: Run, node: ast.Lambda, frame: Frame) -> Value:
    return Function(node, frame)
