package flood

import (
	"math"
)

// polynomial tracks a node that is a polynomial of its argument: noise of the argument grows by the slope, and the
// evaluation adds its own.
func (b *bound) polynomial(index int) {
	node := b.network.Nodes[index]
	variance, reach := b.argument(index, 0)
	if b.plan.Arguments[index] {
		variance = b.refresh(index, variance)
	}
	if node.Reach > 0 {
		reach = node.Reach
	}
	step := b.product(b.plan.Argument[index])
	if node.Degree == 2 {
		b.reach[index] = reach*reach + math.Abs(node.Offset)
		b.variance[index] = 4*reach*reach*variance + step
		return
	}
	most := 0.0
	for _, coefficient := range node.Coefficients {
		most += math.Abs(coefficient)
	}
	steepest := slope(node.Coefficients)
	b.reach[index] = most
	b.variance[index] = steepest*steepest*variance + evaluation(node.Coefficients)*step
}

// slope is what the slope of a Chebyshev series stays below on its interval.
//
// It is sum_k k c_k sin(k t) / sin(t) at cos(t), looked at in points that lie so close together that between them a
// polynomial of its degree is larger by less than a fiftieth (Ehlich and Zeller, 1964).
func slope(coefficients []float64) float64 {
	const closeness = 8
	points, steepest := closeness*len(coefficients), 0.0
	for i := range points {
		t := math.Pi * (float64(i) + 0.5) / float64(points)
		sum := 0.0
		for k, coefficient := range coefficients {
			sum += float64(k) * coefficient * math.Sin(float64(k)*t)
		}
		steepest = max(steepest, math.Abs(sum/math.Sin(t)))
	}
	return steepest / math.Cos(math.Pi/2/closeness)
}

// evaluation is the noise that Paterson and Stockmeyer's method adds to a Chebyshev series, in variances of one product.
//
// T_2k is 2 T_k^2 - 1, so that the noise of a power's square is four times its own deviation beside that of a product,
// doubled. It enters the sum with the coefficients of all higher terms, as they are in the quotient and in the remainder
// of a division by that power: no more than three times their magnitudes. Each of the sum's products adds its own.
func evaluation(coefficients []float64) float64 {
	const entries = 3
	degree := len(coefficients) - 1
	total, power := float64(degree), 0.0
	for k := 2; k <= degree; k *= 2 {
		power = 16*power + 4
		rest := 0.0
		for _, coefficient := range coefficients[k:] {
			rest += math.Abs(coefficient)
		}
		total += power * entries * entries * rest * rest
	}
	return total
}
