package flood

import "math"

// polynomial tracks a node that is a polynomial of its argument: noise of the argument grows by the slope, and the
// evaluation adds its own.
func (b *bound) polynomial(index int) {
	node := b.network.Nodes[index]
	argument, reach := b.argument(index, 0)
	if b.plan.Arguments[index] {
		argument = b.refresh(index, false, argument)
	}
	if node.Reach > 0 && !b.scene.AnyInput {
		reach = node.Reach
	}
	step := b.product(b.plan.Argument[index]) * b.shares.made[index]
	if node.Degree == 2 {
		b.reach[index] = reach*reach + math.Abs(node.Offset)
		b.noise[index] = argument.times(2 * reach).with(step)
		return
	}
	highest, steepest := extent(node.Coefficients)
	if reach > 1 && b.scene.AnyInput {
		highest, steepest = beyond(node.Coefficients, reach)
		step *= steepest * steepest // powers of the argument grow at most like that as well
	}
	b.reach[index] = highest
	b.noise[index] = argument.times(steepest).with(evaluation(node.Coefficients) * step)
}

// beyond is what a Chebyshev series and its slope stay below up to a magnitude beyond their interval, where no term is larger
// than at the end: T_k(cosh t) is cosh(k t), and its slope k sinh(k t) / sinh(t).
func beyond(coefficients []float64, reach float64) (highest, steepest float64) {
	t := math.Acosh(reach)
	for k, coefficient := range coefficients {
		order := float64(k)
		highest += math.Abs(coefficient) * math.Cosh(order*t)
		steepest += math.Abs(coefficient) * order * math.Sinh(order*t) / math.Sinh(t)
	}
	return highest, max(1, steepest)
}

// extent is what a Chebyshev series and its slope stay below on their interval.
//
// At cos(t) they are sum_k c_k cos(k t) and sum_k k c_k sin(k t) / sin(t), looked at in points that lie so close together
// that between them a polynomial of this degree is larger by less than a fiftieth (Ehlich and Zeller, 1964).
func extent(coefficients []float64) (highest, steepest float64) {
	const closeness = 8
	points := closeness * len(coefficients)
	for i := range points {
		t := math.Pi * (float64(i) + 0.5) / float64(points)
		value, slope := 0.0, 0.0
		for k, coefficient := range coefficients {
			value += coefficient * math.Cos(float64(k)*t)
			slope += float64(k) * coefficient * math.Sin(float64(k)*t)
		}
		highest, steepest = max(highest, math.Abs(value)), max(steepest, math.Abs(slope/math.Sin(t)))
	}
	between := math.Cos(math.Pi / 2 / closeness)
	return highest / between, steepest / between
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
