package wire

import (
	"fmt"
	"slices"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// GadgetBytes is the size of a gadget ciphertext.
func GadgetBytes(params ckks.Parameters, g *rlwe.GadgetCiphertext) int {
	part := polyBytes(params.RingQ().AtLevel(g.LevelQ())) + polyBytes(params.RingP().AtLevel(g.LevelP()))
	return len(g.Value) * (g.Degree() + 1) * part
}

// AppendGadget writes the digits of a gadget ciphertext.
func AppendGadget(data []byte, params ckks.Parameters, g *rlwe.GadgetCiphertext) []byte {
	ringQ, ringP := params.RingQ().AtLevel(g.LevelQ()), params.RingP().AtLevel(g.LevelP())
	data = slices.Grow(data, GadgetBytes(params, g))
	for _, digit := range g.Value {
		for _, part := range digit[0] {
			data = appendPoly(data, ringQ, part.Q)
			data = appendPoly(data, ringP, part.P)
		}
	}
	return data
}

// ReadGadget fills a gadget ciphertext from exactly its bytes.
func ReadGadget(data []byte, params ckks.Parameters, into *rlwe.GadgetCiphertext) error {
	if want := GadgetBytes(params, into); len(data) != want {
		return fmt.Errorf("a share of %d bytes where %d belong", len(data), want)
	}
	ringQ, ringP := params.RingQ().AtLevel(into.LevelQ()), params.RingP().AtLevel(into.LevelP())
	var err error
	for _, digit := range into.Value {
		for _, part := range digit[0] {
			if data, err = readPoly(data, ringQ, part.Q); err != nil {
				return err
			}
			if data, err = readPoly(data, ringP, part.P); err != nil {
				return err
			}
		}
	}
	return nil
}

// PolysBytes is the size of so many polynomials at a level.
func PolysBytes(params ckks.Parameters, level, count int) int {
	return count * polyBytes(params.RingQ().AtLevel(level))
}

// AppendPolys writes polynomials at a level.
func AppendPolys(data []byte, params ckks.Parameters, level int, polys ...ring.Poly) []byte {
	data = slices.Grow(data, PolysBytes(params, level, len(polys)))
	for _, poly := range polys {
		data = appendPoly(data, params.RingQ().AtLevel(level), poly)
	}
	return data
}

// ReadPolys fills polynomials at a level from exactly their bytes.
func ReadPolys(data []byte, params ckks.Parameters, level int, polys ...ring.Poly) error {
	if want := PolysBytes(params, level, len(polys)); len(data) != want {
		return fmt.Errorf("a share of %d bytes where %d belong", len(data), want)
	}
	var err error
	for _, poly := range polys {
		if data, err = readPoly(data, params.RingQ().AtLevel(level), poly); err != nil {
			return err
		}
	}
	return nil
}

// QPBytes is the size of so many polynomials modulo the whole modulus, special primes included.
func QPBytes(params ckks.Parameters, count int) int {
	return count * (polyBytes(params.RingQ()) + polyBytes(params.RingP()))
}

// AppendQP writes polynomials modulo the whole modulus.
func AppendQP(data []byte, params ckks.Parameters, polys ...ringqp.Poly) []byte {
	for _, poly := range polys {
		data = appendPoly(data, params.RingQ(), poly.Q)
		data = appendPoly(data, params.RingP(), poly.P)
	}
	return data
}

// ReadQP fills polynomials modulo the whole modulus from exactly their bytes.
func ReadQP(data []byte, params ckks.Parameters, polys ...ringqp.Poly) error {
	if want := QPBytes(params, len(polys)); len(data) != want {
		return fmt.Errorf("a share or key of %d bytes where %d belong", len(data), want)
	}
	var err error
	for _, poly := range polys {
		if data, err = readPoly(data, params.RingQ(), poly.Q); err != nil {
			return err
		}
		if data, err = readPoly(data, params.RingP(), poly.P); err != nil {
			return err
		}
	}
	return nil
}
