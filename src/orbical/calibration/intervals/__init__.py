"""Intervals of measures, comparisons of two models, and curves with bands.


A calibration error is a distance, `theta = ||nu||` with nu the signed residual; its estimate
`||nu + noise||` is biased upwards and never 0, so the percentile bootstrap misses a calibrated
model always. With C the estimates that a calibrated model would show (labels drawn from the
confidences) and B those of the data drawn again, the ends of the interval are:

* **upper**: `value + (q(B) - median(B))`, q the upper quantile. A norm is convex, so the estimate
  is never too small on average: its spread is all that has to be added. No bias is subtracted,
  since the data cannot rule out the worlds that have none (an error of one sign under KS).
* **lower**: the smaller of `value - q(C)`, which the triangle inequality gives, and of the point
  where the upper quantile, linear between that of the calibrated world (distance 0, q(C)) and that
  of the observed one (distance value, q(B)), reaches the value. It is 0 exactly if the value is
  one that a calibrated model may show.

Where few predictions are wrong, their number is skewed and resamples of few say little of more: the
upper end is raised by the difference between the limit of a Poisson mean and its resampled
quantile. Where all predictions are correct, or all are wrong, it is at least the measure at the
worst accuracy that n such predictions allow (Clopper and Pearson).

Measures that estimate a square (ESD, SKCE) have the squared interval of their distance.
`docs/intervals.md` tabulates the coverage of every interval in simulated worlds.
"""
