package network

import (
	"privet/ckks/internal/program"
)

// moved is, for each element of an operation's output, which element of its input it is: -1 where it is padding.
func moved(o *program.Operation, from, to []int) []int32 {
	index := make([]int32, program.Elements(to))
	strides := stridesOf(from)
	place := make([]int, len(to))
	for element := range index {
		index[element] = source(o, from, strides, place)
		for axis := len(to) - 1; axis >= 0; axis-- {
			place[axis]++
			if place[axis] < to[axis] {
				break
			}
			place[axis] = 0
		}
	}
	return index
}

func source(o *program.Operation, from, strides, place []int) int32 {
	at := 0
	switch o.Op {
	case "transpose":
		for axis, position := range place {
			at += position * strides[o.Perm[axis]]
		}
	case "slice":
		for axis, position := range place {
			at += (o.Starts[axis] + position*o.Steps[axis]) * strides[axis]
		}
	case "pad":
		for axis, position := range place {
			inside := position - o.Before[axis]
			if inside < 0 || inside >= from[axis] {
				return -1
			}
			at += inside * strides[axis]
		}
	case "broadcast":
		skipped := len(place) - len(from)
		for axis := range from {
			if from[axis] > 1 {
				at += place[skipped+axis] * strides[axis]
			}
		}
	}
	return int32(at)
}

// repeated is, for each element of a tensor, which element of a smaller one broadcasts to it.
func repeated(from, to []int) []int32 {
	return moved(&program.Operation{Op: "broadcast"}, from, to)
}

// joined is, for each of the inputs of a concatenation, where its elements go in the output.
func joined(shapes [][]int, axis int, to []int) [][]int32 {
	all := make([][]int32, len(shapes))
	strides := stridesOf(to)
	offset := 0
	for input, shape := range shapes {
		index := make([]int32, program.Elements(to))
		for i := range index {
			index[i] = -1
		}
		own := stridesOf(shape)
		for element := range program.Elements(shape) {
			at, rest := offset*strides[axis], element
			for i := range shape {
				at += rest / own[i] * strides[i]
				rest %= own[i]
			}
			index[at] = int32(element)
		}
		offset += shape[axis]
		all[input] = index
	}
	return all
}

func stridesOf(shape []int) []int {
	strides := make([]int, len(shape))
	step := 1
	for axis := len(shape) - 1; axis >= 0; axis-- {
		strides[axis] = step
		step *= shape[axis]
	}
	return strides
}
