package program

import (
	"fmt"
	"slices"
)

// infer is the output shape of an operation on inputs of these shapes. Reshape, broadcast and pooling take the declared
// shape as their target.
func infer(o *Operation, inputs [][]int, declared []int) ([]int, error) {
	x := inputs[0]
	switch o.Op {
	case "conv2d":
		return inferConv(o, x)
	case "dense":
		if len(x) != 2 || len(o.WeightShape) != 2 || o.WeightShape[0] != x[1] || !bounded(o.WeightShape) {
			return nil, fmt.Errorf("weights %v do not fit %v", o.WeightShape, x)
		}
		return []int{x[0], o.WeightShape[1]}, nil
	case "scale":
		return same(x, o.WeightShape)
	case "add_constant":
		return x, broadcasts(o.BiasShape, x)
	case "add", "sub", "mul":
		return same(x, inputs[1])
	case "negate", "relu":
		return x, nil
	case "shift_left", "truncate":
		if o.Bits < 0 || o.Bits > 63 {
			return nil, fmt.Errorf("%d bits", o.Bits)
		}
		return x, nil
	case "polynomial":
		if o.Degree < 1 || o.Degree > maxDegree {
			return nil, fmt.Errorf("degree %d", o.Degree)
		}
		return x, nil
	case "avg_pool2d", "max_pool2d":
		return inferPool(o, x, declared)
	case "reshape":
		if Elements(x) != Elements(declared) {
			return nil, fmt.Errorf("%v has another number of elements than %v", x, declared)
		}
		return declared, nil
	case "broadcast":
		return declared, broadcasts(x, declared)
	}
	return inferMovement(o, inputs)
}

func inferMovement(o *Operation, inputs [][]int) ([]int, error) {
	x := inputs[0]
	switch o.Op {
	case "transpose":
		sorted := slices.Clone(o.Perm)
		slices.Sort(sorted)
		made := make([]int, len(x))
		for i := range sorted {
			if len(sorted) != len(x) || sorted[i] != i {
				return nil, fmt.Errorf("%v is no permutation of %d axes", o.Perm, len(x))
			}
			made[i] = x[o.Perm[i]]
		}
		if len(o.Perm) != len(x) {
			return nil, fmt.Errorf("%v is no permutation of %d axes", o.Perm, len(x))
		}
		return made, nil
	case "slice":
		return inferSlice(o, x)
	case "concat":
		return inferConcat(o, inputs)
	case "pad":
		if len(o.Before) != len(x) || len(o.After) != len(x) {
			return nil, fmt.Errorf("padding of another rank")
		}
		made := slices.Clone(x)
		for i := range made {
			if o.Before[i] < 0 || o.After[i] < 0 || o.Before[i] > maxElements || o.After[i] > maxElements {
				return nil, fmt.Errorf("padding %v, %v", o.Before, o.After)
			}
			made[i] += o.Before[i] + o.After[i]
		}
		return made, nil
	case "argmax":
		if o.Axis < 0 || o.Axis >= len(x) {
			return nil, fmt.Errorf("axis %d of %d axes", o.Axis, len(x))
		}
		made := slices.Clone(x)
		if o.Keepdims {
			made[o.Axis] = 1
			return made, nil
		}
		return slices.Delete(made, o.Axis, o.Axis+1), nil
	}
	return nil, fmt.Errorf("there is no such operation")
}

func inferConv(o *Operation, x []int) ([]int, error) {
	w := o.WeightShape
	if len(x) != 4 || len(w) != 4 || !bounded(w) || !positive(o.Stride, 2) || !positive(o.Dilation, 2) ||
		len(o.Padding) != 4 || o.Groups < 1 || w[0]%o.Groups != 0 || x[1] != w[1]*o.Groups {
		return nil, fmt.Errorf("weights %v in %d groups do not fit %v", w, o.Groups, x)
	}
	made := []int{x[0], w[0], 0, 0}
	for axis := range 2 {
		before, after := o.Padding[axis], o.Padding[axis+2]
		if before < 0 || after < 0 || before > maxElements || after > maxElements {
			return nil, fmt.Errorf("padding %v", o.Padding)
		}
		free := x[axis+2] + before + after - (w[axis+2]-1)*o.Dilation[axis] - 1
		if free < 0 {
			return nil, fmt.Errorf("the kernel is larger than the padded image")
		}
		made[axis+2] = free/o.Stride[axis] + 1
	}
	return made, nil
}

func inferPool(o *Operation, x, declared []int) ([]int, error) {
	if len(x) != 4 || len(declared) != 4 || !positive(o.Kernel, 2) || !positive(o.Stride, 2) ||
		len(o.Padding) != 4 || !positive(o.Dilation, 2) || x[0] != declared[0] || x[1] != declared[1] {
		return nil, fmt.Errorf("windows %v do not fit %v", o.Kernel, x)
	}
	for _, padding := range o.Padding {
		if padding < 0 || padding > maxElements {
			return nil, fmt.Errorf("padding %v", o.Padding)
		}
	}
	positions := declared[2] * declared[3]
	if o.Kernel[0] > maxElements/o.Kernel[1] || Elements(declared) > maxElements/(o.Kernel[0]*o.Kernel[1]) {
		return nil, fmt.Errorf("windows %v at %v positions are too many to read", o.Kernel, declared)
	}
	if o.Op == "avg_pool2d" && len(o.Factors) != 1 && len(o.Factors) != positions {
		return nil, fmt.Errorf("%d factors for %d positions", len(o.Factors), positions)
	}
	return declared, nil
}

func inferSlice(o *Operation, x []int) ([]int, error) {
	if len(o.Starts) != len(x) || len(o.Ends) != len(x) || len(o.Steps) != len(x) {
		return nil, fmt.Errorf("a slice of another rank")
	}
	made := make([]int, len(x))
	for i, size := range x {
		start, end, step := o.Starts[i], o.Ends[i], o.Steps[i]
		inside := start >= 0 && start < size && end >= -1 && end <= size
		if !inside || step == 0 || step < -maxElements || step > maxElements {
			return nil, fmt.Errorf("the slice leaves the tensor %v", x)
		}
		span, pace := end-start, step
		if step < 0 {
			span, pace = start-end, -step
		}
		if span < 1 {
			return nil, fmt.Errorf("the slice of %v is empty", x)
		}
		made[i] = (span-1)/pace + 1
	}
	return made, nil
}

func inferConcat(o *Operation, inputs [][]int) ([]int, error) {
	made := slices.Clone(inputs[0])
	if o.Axis < 0 || o.Axis >= len(made) {
		return nil, fmt.Errorf("axis %d of %d axes", o.Axis, len(made))
	}
	for _, other := range inputs[1:] {
		agrees := len(other) == len(made)
		for i := range made {
			agrees = agrees && (i == o.Axis || other[i] == made[i])
		}
		if !agrees {
			return nil, fmt.Errorf("%v cannot be joined to %v", other, made)
		}
		made[o.Axis] += other[o.Axis]
	}
	return made, nil
}

func same(a, b []int) ([]int, error) {
	if !slices.Equal(a, b) {
		return nil, fmt.Errorf("shapes %v and %v differ", a, b)
	}
	return a, nil
}

func broadcasts(from, to []int) error {
	fits := len(from) <= len(to)
	for i := 1; fits && i <= len(from); i++ {
		size := from[len(from)-i]
		fits = size == 1 || size == to[len(to)-i]
	}
	if !fits {
		return fmt.Errorf("%v does not broadcast to %v", from, to)
	}
	return nil
}

func positive(numbers []int, count int) bool {
	if len(numbers) != count {
		return false
	}
	for _, number := range numbers {
		if number < 1 || number > maxElements {
			return false
		}
	}
	return true
}
