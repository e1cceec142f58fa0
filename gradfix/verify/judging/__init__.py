"""Judging a repair that gradfix did not write.

Silencing an error is easy, and most ways to do so train something else. So a repair is held against programs
whose gradients are known to be right. Where all that is wrong with the original is which loss is given to
whom, and how often, that is the original itself, made to keep its graphs and to give each loss once to those
that it is for (see :func:`gradfix.core.intent.corrections`). Else it is what gradfix's own fixes make of it,
but for choices (each is run first, and has to run). A repair is accepted

* if every optimizer consumes, step for step and on every seed, the gradients that it consumes in one
  of them; or
* if it does so while the weights of both are put back after each step: then the order in which the
  networks are trained (generator first, say) makes no difference, and everything else does. In further runs
  one optimizer's weights do move, or all are put back to others after every other iteration, which copies of
  the former ones do not have; or
* if, for state that is carried over iterations, its first step consumes the sum of what the iterations of the
  original contribute, with their graphs kept and the weights held still: full backpropagation
  through time, where gradfix's own fix truncates. Later steps must go on with the iterations after these,
  differentiate what these come to, and consume the sum of what they contribute to gradfix's own fix, if that
  is made to truncate as seldom.

In the last two cases the repair's optimizers must also have the settings of the original's, and their
steps must move the weights. In all cases it must keep up what else there is: averages of weights, running
statistics. And what is found alike is looked at once more in runs that go several times as far, where
schedules and epochs come to bear, and where weights are put back to others every now and then: what goes on
with former ones is seen, however slowly they are learned.

Random numbers may be drawn anew: each optimizer has to depend on as many draws as in the repair, and then all
this has to hold in runs in which it gets the same numbers.
"""
