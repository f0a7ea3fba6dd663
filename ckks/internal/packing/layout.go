// Package packing says where the elements of a value lie in the slots of ciphertexts, and which products, rotations and
// sums take a value from one layout to another through a matrix.
//
// A ciphertext's slots are a row of `Features` places of `batch` slots each: slot = place * batch + sample. That is the
// transposed row-flatten of slytHErin with a batch padded to a power of two, so that rotating by whole places is cyclic
// and every generalised diagonal is full.
package packing

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
)

// Layout places the elements of a value. If they fit one ciphertext, it repeats with Period places until the ciphertext
// is full; otherwise Period is Features and element e lies in ciphertext Place[e] / Features.
//
// Skew shifts each repetition by so many places more than the one before: a dense layer then finds the element that it needs
// at a smaller distance, and takes that many diagonals instead of as many as its outputs.
//
// Stride is how far apart the images of a value's channels lie, if that is a good giant step beside powers of two; else 0.
type Layout struct {
	Name        string
	Features    int
	Ciphertexts int
	Period      int
	Skew        int
	Stride      int
	Place       []int32
}

func newLayout(name string, features, extent int, place []int32) Layout {
	made := Layout{Name: name, Features: features, Ciphertexts: 1, Place: place}
	made.Period = PowerOfTwo(extent)
	if made.Period > features {
		made.Period = features
		made.dropEmpty()
	}
	return made
}

// dropEmpty moves the elements of a value that needs several ciphertexts to as many as hold any.
func (l *Layout) dropEmpty() {
	renamed := map[int]int{}
	for _, place := range l.Place {
		renamed[int(place)/l.Features] = 0
	}
	used := slices.Sorted(maps.Keys(renamed))
	for i, ciphertext := range used {
		renamed[ciphertext] = i
	}
	for i, place := range l.Place {
		l.Place[i] = int32(renamed[int(place)/l.Features]*l.Features + int(place)%l.Features)
	}
	l.Ciphertexts = len(used)
	if l.Ciphertexts == 1 {
		l.Period = l.Features
	}
}

// Slots are the places of an element, one per repetition, as ciphertext and place in it.
func (l Layout) slots(element int) (ciphertext int, places []int) {
	at := int(l.Place[element])
	if l.Ciphertexts > 1 {
		return at / l.Features, []int{at % l.Features}
	}
	for copy := range l.Features / l.Period {
		places = append(places, copy*l.Period+modulo(at-copy*l.Skew, l.Period))
	}
	return 0, places
}

// Fill puts values, one per element and sample, into the slots of the layout's ciphertexts.
func (l Layout) Fill(samples [][]float64, batch int) [][]float64 {
	slots := make([][]float64, l.Ciphertexts)
	for i := range slots {
		slots[i] = make([]float64, l.Features*batch)
	}
	for element := range l.Place {
		ciphertext, places := l.slots(element)
		for _, place := range places {
			for sample, values := range samples {
				slots[ciphertext][place*batch+sample] = values[element]
			}
		}
	}
	return slots
}

// Take reads the elements of each sample back from slots.
func (l Layout) Take(slots [][]float64, batch, samples int) [][]float64 {
	taken := make([][]float64, samples)
	for sample := range taken {
		taken[sample] = make([]float64, len(l.Place))
		for element := range l.Place {
			ciphertext, places := l.slots(element)
			taken[sample][element] = slots[ciphertext][places[0]*batch+sample]
		}
	}
	return taken
}

// Flat lays elements side by side.
func Flat(size, features int) Layout {
	place := make([]int32, size)
	for i := range place {
		place[i] = int32(i)
	}
	return newLayout("flat", features, size, place)
}

// Guarded lays elements side by side with a place that holds none in each ciphertext; ok is false where a ciphertext has one place
// alone.
func Guarded(size, features int) (layout Layout, ok bool) {
	if features < 2 {
		return Layout{}, false
	}
	used := features - 1
	if PowerOfTwo(size+1) <= features {
		used = size
	}
	place := make([]int32, size)
	for i := range place {
		place[i] = int32(i/used*features + i%used)
	}
	return newLayout("flat", features, int(place[size-1])+2, place), true
}

// Free are, for each ciphertext, its places below Period that hold no element. A value with a matrix before it is zero there.
func (l Layout) Free() [][]int {
	taken := make([]bool, l.Ciphertexts*l.Period)
	for _, place := range l.Place {
		taken[place] = true
	}
	free := make([][]int, l.Ciphertexts)
	for at, is := range taken {
		if !is {
			free[at/l.Period] = append(free[at/l.Period], at%l.Period)
		}
	}
	return free
}

// Skewed is a flat layout whose repetitions are shifted for a dense layer with outputs of this period; ok is false where
// there is nothing to gain.
func Skewed(size, features, outputs int) (layout Layout, ok bool) {
	made := Flat(size, features)
	copies := features / made.Period
	if made.Ciphertexts > 1 || copies < 2 || outputs > made.Period {
		return made, false
	}
	// With more repetitions than outputs a dense layer uses as many of them as it has outputs.
	made.Skew = max(1, outputs/copies)
	made.Name = fmt.Sprintf("flat, skewed by %d", made.Skew)
	return made, true
}

// Grid lays an image [channels, height, width] on a grid of `side` columns, its pixels `gap` apart. With fill, gap^2
// channels share a grid (multiplexed packing, Lee and others 2022); otherwise each has one of its own.
func Grid(image []int, side, gap int, fill bool, features int) (layout Layout, ok bool) {
	channels, height, width := image[0], image[1], image[2]
	if width*gap > side {
		return Layout{}, false
	}
	shared := 1
	if fill {
		shared = gap * gap
	}
	plane := side * PowerOfTwo(height*gap)
	place := placed(image, func(channel, y, x int) int {
		inside := channel % shared
		corner := channel/shared*plane + inside/gap*side + inside%gap
		return corner + y*gap*side + x*gap
	})
	extent := (channels-1)/shared*plane + plane
	name := fmt.Sprintf("grid of %d columns, gap %d", side, gap)
	if fill {
		name += ", multiplexed"
	}
	return newLayout(name, features, extent, place), true
}

// Phases lays an image on step^2 grids, one for each pixel of a square of step x step: a convolution of that stride then
// reads whole grids.
func Phases(image []int, step, features int) Layout {
	channels, height, width := image[0], image[1], image[2]
	side := PowerOfTwo((width + step - 1) / step)
	plane := side * PowerOfTwo((height+step-1)/step)
	name := fmt.Sprintf("%d phases on grids of %d columns", step*step, side)
	return newLayout(name, features, channels*step*step*plane, phased(image, step, side, plane))
}

// phased are places on step^2 grids of so many columns, `stride` places apart: one for each pixel of a square of step x step.
func phased(image []int, step, columns, stride int) []int32 {
	return placed(image, func(channel, y, x int) int {
		phase := channel*step*step + y%step*step + x%step
		return phase*stride + y/step*columns + x/step
	})
}

// placed is where the elements of an image [channels, height, width] lie, in their order.
func placed(image []int, place func(channel, y, x int) int) []int32 {
	made := make([]int32, 0, image[0]*image[1]*image[2])
	for channel := range image[0] {
		for y := range image[1] {
			for x := range image[2] {
				made = append(made, int32(place(channel, y, x)))
			}
		}
	}
	return made
}

// PowerOfTwo is the smallest power of two that is at least a positive number.
func PowerOfTwo(atLeast int) int { return 1 << bits.Len(uint(atLeast-1)) }

func modulo(a, m int) int { return (a%m + m) % m }
