package network

import (
	"math"

	"privet/ckks/internal/program"
)

// window walks the elements of a two-dimensional window that lie on an image of this height and width.
type window struct {
	height, width            int
	kernel, stride, dilation []int
	top, left                int
}

func (w window) each(y, x int, visit func(tap, at int)) {
	for ky := range w.kernel[0] {
		row := y*w.stride[0] + ky*w.dilation[0] - w.top
		if row < 0 || row >= w.height {
			continue
		}
		for kx := range w.kernel[1] {
			column := x*w.stride[1] + kx*w.dilation[1] - w.left
			if column >= 0 && column < w.width {
				visit(ky*w.kernel[1]+kx, row*w.width+column)
			}
		}
	}
}

// convolution is the matrix of a convolution, with weights scaled by 2^-rise (nil: places only).
func convolution(o *program.Operation, from, to []int, weights []int64, rise int) *Matrix {
	groups, perGroup := o.Groups, o.WeightShape[1]
	taps := o.WeightShape[2] * o.WeightShape[3]
	slide := window{from[2], from[3], o.WeightShape[2:], o.Stride, o.Dilation, o.Padding[0], o.Padding[1]}
	made := newMatrix(program.Elements(to), program.Elements(from), program.Elements(to)*perGroup*taps)
	plane := from[2] * from[3]
	for sample := range to[0] {
		for out := range to[1] {
			group := out / (to[1] / groups)
			for y := range to[2] {
				for x := range to[3] {
					for channel := range perGroup {
						base := (sample*from[1] + group*perGroup + channel) * plane
						slide.each(y, x, func(tap, at int) {
							value := 0.0
							if weights != nil {
								value = real(weights[(out*perGroup+channel)*taps+tap], rise)
							}
							made.append(int32(base+at), value, weights != nil)
						})
					}
					made.endRow()
				}
			}
		}
	}
	return made
}

// dense is the matrix of a dense layer on each row of its input.
func dense(o *program.Operation, rows int, weights []int64, rise int) *Matrix {
	inner, columns := o.WeightShape[0], o.WeightShape[1]
	made := newMatrix(rows*columns, rows*inner, rows*columns*inner)
	for row := range rows {
		for column := range columns {
			for k := range inner {
				value := 0.0
				if weights != nil {
					value = real(weights[k*columns+column], rise)
				}
				made.append(int32(row*inner+k), value, weights != nil)
			}
			made.endRow()
		}
	}
	return made
}

// average is the matrix of an average pooling; its factors are public.
func average(o *program.Operation, from, to []int, rise int, valued bool) *Matrix {
	slide := window{from[2], from[3], o.Kernel, o.Stride, o.Dilation, o.Padding[0], o.Padding[1]}
	made := newMatrix(program.Elements(to), program.Elements(from), program.Elements(to)*o.Kernel[0]*o.Kernel[1])
	for image := range to[0] * to[1] {
		for y := range to[2] {
			for x := range to[3] {
				factor := o.Factors[(y*to[3]+x)%len(o.Factors)]
				slide.each(y, x, func(_, at int) {
					made.append(int32(image*from[2]*from[3]+at), real(factor, rise), valued)
				})
				made.endRow()
			}
		}
	}
	return made
}

func real(integer int64, scale int) float64 { return math.Ldexp(float64(integer), -scale) }
