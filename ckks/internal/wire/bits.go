// Package wire is the form of ciphertexts and keys between parties: random parts as the seed they grow from, other
// coefficients in as many bits as their prime has. What comes from a peer has a length that both sides compute from the
// parameters, and every coefficient is checked to be below its prime.
package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// limbBytes is the size of so many packed coefficients below a modulus.
func limbBytes(modulus uint64, count int) int {
	return (bits.Len64(modulus-1)*count + 7) / 8
}

func polyBytes(r *ring.Ring) int {
	total := 0
	for _, s := range r.SubRings[:r.Level()+1] {
		total += limbBytes(s.Modulus, s.N)
	}
	return total
}

// part is a polynomial that is written with as many limbs as its ring has.
type part struct {
	ring *ring.Ring
	poly ring.Poly
}

func partsBytes(parts []part) int {
	total := 0
	for _, p := range parts {
		total += polyBytes(p.ring)
	}
	return total
}

func appendParts(data []byte, parts []part) []byte {
	data = slices.Grow(data, partsBytes(parts))
	for _, p := range parts {
		for i, s := range p.ring.SubRings[:p.ring.Level()+1] {
			data = appendLimb(data, p.poly.Coeffs[i], s.Modulus)
		}
	}
	return data
}

func appendLimb(data []byte, coefficients []uint64, modulus uint64) []byte {
	width := bits.Len64(modulus - 1)
	var held uint64
	filled := 0
	for _, coefficient := range coefficients {
		// Lattigo leaves some shares reduced to below twice the prime only.
		if coefficient >= modulus {
			coefficient -= modulus
		}
		held |= coefficient << filled
		if filled+width >= 64 {
			data = binary.LittleEndian.AppendUint64(data, held)
			held = coefficient >> (64 - filled)
			filled += width - 64
			continue
		}
		filled += width
	}
	for ; filled > 0; filled -= 8 {
		data = append(data, byte(held))
		held >>= 8
	}
	return data
}

// readParts fills polynomials from exactly their bytes; `what` they are is for people.
func readParts(data []byte, what string, parts []part) error {
	if want := partsBytes(parts); len(data) != want {
		return fmt.Errorf("%s of %d bytes where %d belong", what, len(data), want)
	}
	for _, p := range parts {
		for i, s := range p.ring.SubRings[:p.ring.Level()+1] {
			length := limbBytes(s.Modulus, s.N)
			if err := readLimb(data[:length], p.poly.Coeffs[i], s.Modulus); err != nil {
				return err
			}
			data = data[length:]
		}
	}
	return nil
}

func readLimb(data []byte, into []uint64, modulus uint64) error {
	width := bits.Len64(modulus - 1)
	var held uint64
	filled, next := 0, 0
	for i := range into {
		value := held
		need := width - filled
		if need > 0 {
			var fresh uint64
			count := min(8, len(data)-next)
			if count == 8 {
				fresh = binary.LittleEndian.Uint64(data[next:])
			} else {
				for i, last := range data[next:] {
					fresh |= uint64(last) << (8 * i)
				}
			}
			next += count
			value |= fresh << filled
			held, filled = fresh>>need, 8*count-need
		} else {
			held, filled = held>>width, filled-width
		}
		value &= 1<<width - 1
		if value >= modulus {
			return fmt.Errorf("a coefficient is not below its prime")
		}
		into[i] = value
	}
	if filled > 7 || held != 0 {
		return fmt.Errorf("a polynomial is followed by something else")
	}
	return nil
}
