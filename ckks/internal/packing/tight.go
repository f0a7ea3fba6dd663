package packing

import "fmt"

// Tight is how the two sides of a strided convolution lie where images of a power of two as many columns would not fit one
// ciphertext: the input as step^2 images, one for each pixel of a square of step x step, and the output's channels, all
// with as many columns, `stride` places apart.
type Tight struct{ step, columns, stride, features int }

// NewTight is for a convolution from an image [channels, height, width] to another; ok is false where it saves nothing.
func NewTight(from, to []int, step, features int) (t Tight, ok bool) {
	if step < 2 { // 0 where the image becomes more than twice as wide
		return Tight{}, false
	}
	columns, rows := (from[2]+step-1)/step, (from[1]+step-1)/step
	images := max(from[0]*step*step, to[0])
	if to[1] > rows || columns == PowerOfTwo(columns) || images*columns*rows > features {
		return Tight{}, false
	}
	t = Tight{step, columns, columns * rows, features}
	// With all images and some whole rows as many places as a ciphertext has, shifts that wrap around are like others.
	for free := 0; (features-free)/images >= t.stride; free += columns {
		if (features-free)%images == 0 {
			t.stride = (features - free) / images
			break
		}
	}
	return t, true
}

// Phases lays out the input.
func (t Tight) Phases(image []int) Layout {
	place := phased(image, t.step, t.columns, t.stride)
	return t.layout(fmt.Sprintf("%d phases of %d columns", t.step*t.step, t.columns), place)
}

// Channels lays out the output.
func (t Tight) Channels(image []int) Layout {
	place := phased(image, 1, t.columns, t.stride)
	return t.layout(fmt.Sprintf("channels of %d columns", t.columns), place)
}

func (t Tight) layout(name string, place []int32) Layout {
	made := newLayout(fmt.Sprintf("%s, %d apart", name, t.stride), t.features, t.features, place)
	made.Stride = t.stride
	return made
}
