// Package flood hides all of a decryption but its result: noise on the coefficients that the result has, and uniform
// values on all others (docs/reference/protocols/ckks.md, "Flooding").
//
// A result whose slots repeat after `period` slots is a polynomial in X^(N/period): the ring of such results has no more
// coefficients than different slots, and only these need to come through.
package flood

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"io"
	"math"

	"github.com/tuneinsight/lattigo/v6/ring"
)

// Noise floods results of a period with Gaussian noise of a deviation; safe for one goroutine.
//
// A sample is a normal variable rounded to the nearest integer. Rounding is the same for all results, so that it tells
// nothing (data processing), and the bound on what a continuous Gaussian hides carries over. Normal variables are made by
// Box and Muller's method of an angle of 53 bits and a uniform variable of 128, which has 53 significant ones however small it is:
// far from zero, too, the steps of samples of a plan's deviations, up to 2^49, lie below an integer; those of the angle do within four deviations.
type Noise struct {
	Deviation float64
	Period    int
	source    *bufio.Reader
}

// New is noise from the operating system's randomness.
func New(deviation float64, period int) *Noise {
	return &Noise{deviation, period, bufio.NewReaderSize(rand.Reader, 1<<12)}
}

// Add floods a polynomial in NTT form, and makes the coefficients that its result does not have uniform.
func (n *Noise) Add(ringQ *ring.Ring, poly ring.Poly) error {
	flood, err := Uniform(ringQ)
	if err != nil {
		return err
	}
	return n.add(ringQ, flood, poly)
}

// AddSparse floods a polynomial in NTT form that has no other coefficients than its result.
func (n *Noise) AddSparse(ringQ *ring.Ring, poly ring.Poly) error {
	return n.add(ringQ, ringQ.NewPoly(), poly)
}

// add puts noise into the coefficients of `flood` that the result has, and adds it.
func (n *Noise) add(ringQ *ring.Ring, flood, poly ring.Poly) error {
	if err := n.sample(ringQ, flood); err != nil {
		return err
	}
	ringQ.NTT(flood, flood)
	ringQ.Add(poly, flood, poly)
	return nil
}

func (n *Noise) sample(ringQ *ring.Ring, made ring.Poly) error {
	step := ringQ.N() / n.Period
	for at := 0; at < ringQ.N(); at += step {
		value, err := n.gaussian()
		if err != nil {
			return err
		}
		for i, s := range ringQ.SubRings[:ringQ.Level()+1] {
			residue := value % int64(s.Modulus)
			if residue < 0 {
				residue += int64(s.Modulus)
			}
			made.Coeffs[i][at] = uint64(residue)
		}
	}
	return nil
}

func (n *Noise) gaussian() (int64, error) {
	var random [24]byte
	if _, err := io.ReadFull(n.source, random[:]); err != nil {
		return 0, err
	}
	const steps, word = 1 << 53, 1 << 64
	high, low := binary.LittleEndian.Uint64(random[:8]), binary.LittleEndian.Uint64(random[8:16])
	radius := (float64(high) + (float64(low)+1)/word) / word
	angle := float64(binary.LittleEndian.Uint64(random[16:])>>11) / steps
	return int64(math.RoundToEven(n.Deviation * math.Sqrt(-2*math.Log(radius)) * math.Cos(2*math.Pi*angle))), nil
}
