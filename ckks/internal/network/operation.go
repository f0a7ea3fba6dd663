package network

import (
	"fmt"

	"privet/ckks/internal/program"
)

// operation is the affine expression of an operation's output; polynomials and products become nodes.
func (b *builder) operation(o *program.Operation) (Expression, error) {
	switch o.Op {
	case "polynomial":
		return b.polynomial(o, b.program.Values[o.Inputs[0]].Scale)
	case "mul":
		return b.product(o), nil
	case "shift_left", "truncate":
		// These change the scale of integers, not the real value.
		if factor, lacks := b.factors[o.Inputs[0]]; lacks {
			b.factors[o.Output] = factor
		}
		return b.values[o.Inputs[0]], nil
	}
	x := b.read(o.Inputs[0])
	from, to := b.program.Values[o.Inputs[0]], b.program.Values[o.Output]
	switch o.Op {
	case "conv2d", "dense":
		return b.linear(o, x, from, to)
	case "scale":
		weights, err := b.tensor(o, o.Weight, true)
		if err != nil {
			return x, err
		}
		return x.scaled(func(i int) float64 { return at(weights, i, to.Scale-from.Scale) }), nil
	case "add_constant":
		bias, err := b.tensor(o, *o.Bias, true)
		if err != nil {
			return x, err
		}
		places := repeated(o.BiasShape, to.Shape)
		return x.shifted(func(i int) float64 { return at(bias, int(places[i]), to.Scale) }), nil
	case "add":
		return x.plus(b.read(o.Inputs[1])), nil
	case "sub":
		return x.plus(negated(b.read(o.Inputs[1]))), nil
	case "negate":
		return negated(x), nil
	case "avg_pool2d":
		if err := b.spend(to.Len() * o.Kernel[0] * o.Kernel[1]); err != nil {
			return x, err
		}
		pool := average(o, from.Shape, to.Shape, to.Scale-from.Scale, b.weights != nil)
		return b.apply(pool, x, nil, image(to.Shape))
	}
	return b.movement(o, x, from, to)
}

func (b *builder) linear(o *program.Operation, x Expression, from, to program.Value) (Expression, error) {
	weights, err := b.tensor(o, o.Weight, false)
	if err != nil {
		return x, err
	}
	inner := from.Shape[1]
	if o.Op == "conv2d" {
		inner = o.WeightShape[1] * o.WeightShape[2] * o.WeightShape[3]
	}
	if err := b.spend(to.Len() * inner); err != nil {
		return x, err
	}
	var matrix *Matrix
	rise := to.Scale - from.Scale
	plane := 1
	if o.Op == "conv2d" {
		matrix = convolution(o, from.Shape, to.Shape, weights, rise)
		plane = to.Shape[2] * to.Shape[3]
	} else {
		matrix = dense(o, from.Shape[0], weights, rise)
	}
	var bias []float64
	if o.Bias != nil && b.weights != nil {
		tensor := b.weights.Tensor(*o.Bias)
		bias = make([]float64, matrix.Rows)
		for i := range bias {
			bias[i] = real(tensor[i/plane%len(tensor)], to.Scale)
		}
	}
	return b.apply(matrix, x, bias, image(to.Shape))
}

// apply is matrix * x + bias, unless the product could have too many entries, or takes too many steps.
func (b *builder) apply(matrix *Matrix, x Expression, bias []float64, image []int) (Expression, error) {
	for _, term := range x.Terms {
		products := matrix.productsWith(term.Matrix)
		if most := min(products, matrix.Rows*term.Matrix.Columns); most > MaxEntries {
			return x, fmt.Errorf("and the linear layers before it make a matrix of up to %d entries: %s", most, tooLarge)
		}
		if err := b.work(products); err != nil {
			return x, err
		}
	}
	return x.apply(matrix, bias, image), nil
}

func (b *builder) movement(o *program.Operation, x Expression, from, to program.Value) (Expression, error) {
	switch o.Op {
	case "reshape":
		if seen := image(to.Shape); seen != nil {
			x.Image = seen
		}
		return x, nil
	case "transpose", "slice", "broadcast", "pad":
		index := moved(o, from.Shape, to.Shape)
		if err := b.fits(x.entriesOf(index)); err != nil {
			return x, err
		}
		return x.selected(index, real(o.Constant, to.Scale), image(to.Shape)), nil
	case "concat":
		shapes := make([][]int, len(o.Inputs))
		for i, id := range o.Inputs {
			shapes[i] = b.program.Values[id].Shape
		}
		var made Expression
		for i, index := range joined(shapes, o.Axis, to.Shape) {
			part := b.read(o.Inputs[i]).selected(index, 0, image(to.Shape))
			if i == 0 {
				made = part
			} else {
				made = made.plus(part)
			}
		}
		return made, nil
	case "relu", "max_pool2d", "argmax", "step", "leaves":
		return x, fmt.Errorf("compares values, which suite ckks does not do: put a smooth activation or an average in its place, or choose suite gmw or fss")
	}
	return x, fmt.Errorf("is not known to suite ckks")
}

func negated(x Expression) Expression { return x.scaled(func(int) float64 { return -1 }) }

func at(integers []int64, index, scale int) float64 {
	if integers == nil {
		return 0
	}
	return real(integers[index], scale)
}
