"""The factorisation of a problem: `solve` joins the backend of its rows, the history and the loop."""

from dataclasses import replace

from topicsteer.nmf import kernels
from topicsteer.nmf.checks import warn_of_labels, warn_of_result
from topicsteer.nmf.loop import Callback, factorise, pace_of
from topicsteer.nmf.protocols import Problem, Result
from topicsteer.nmf.statistics import History, WithHistory
from topicsteer.system.files import Scratch


def solve(problem: Problem, scratch: Scratch | None = None, callback: Callback | None = None) -> Result:
    """Solve a problem from its start, and warn about labels and topics that look like mistakes.

    Parameters
    ----------
    problem : Problem
        A problem with a start (see `topicsteer.nmf.start`).
    scratch : Scratch, optional
        Folder for W on disk.
    callback : callable, optional
        Called with iteration, objective and seconds; True ends the loop.
    """
    warn_of_labels(problem)
    kernels.announce(problem.rows.dtype)
    pace = pace_of(problem)
    backend = problem.rows.backend(problem, scratch)
    before = problem.history
    if before is None:
        before = History.empty(len(problem.HT), problem.n_topics, problem.rows.dtype)
    joined = WithHistory(backend, before)
    result = factorise(
        joined,
        problem.HT,
        problem.permitted,
        solver=problem.parameters.solver,
        regularisation=problem.regularisation,
        tol=pace.tol * problem.share,  # an iteration cannot improve earlier documents
        max_iter=problem.parameters.max_iter,
        threads=problem.parameters.threads,
        opening=pace.opening,
        unit=problem.penalties is not None,
        term_constraints=problem.term_constraints,
        callback=printing(callback) if problem.parameters.verbose else callback,
    )
    history = None if problem.E is not None else joined.conclude(problem.totals)
    warn_of_result(problem, result, pace.tol)
    return replace(result, weights=backend.weights(), history=history)


def printing(callback: Callback | None) -> Callback:
    """Return a callback that prints one line per iteration and then calls the user's callback."""

    def report(iteration: int, objective: float, seconds: float) -> object:
        print(f"iteration {iteration:4d}   objective {objective:.6g}   {seconds:.1f} s")
        return None if callback is None else callback(iteration, objective, seconds)

    return report
