package wire

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/ring/ringqp"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

func gadgetParts(params ckks.Parameters, g *rlwe.GadgetCiphertext) []part {
	ringQ, ringP := params.RingQ().AtLevel(g.LevelQ()), params.RingP().AtLevel(g.LevelP())
	var parts []part
	for _, digit := range g.Value {
		for _, poly := range digit[0] {
			parts = append(parts, part{ringQ, poly.Q}, part{ringP, poly.P})
		}
	}
	return parts
}

// GadgetBytes is the size of a gadget ciphertext.
func GadgetBytes(params ckks.Parameters, g *rlwe.GadgetCiphertext) int {
	return partsBytes(gadgetParts(params, g))
}

// AppendGadget writes the digits of a gadget ciphertext.
func AppendGadget(data []byte, params ckks.Parameters, g *rlwe.GadgetCiphertext) []byte {
	return appendParts(data, gadgetParts(params, g))
}

// ReadGadget fills a gadget ciphertext from exactly its bytes.
func ReadGadget(data []byte, params ckks.Parameters, into *rlwe.GadgetCiphertext) error {
	return readParts(data, "a share", gadgetParts(params, into))
}

func polyParts(params ckks.Parameters, level int, polys []ring.Poly) []part {
	var parts []part
	for _, poly := range polys {
		parts = append(parts, part{params.RingQ().AtLevel(level), poly})
	}
	return parts
}

// PolysBytes is the size of so many polynomials at a level.
func PolysBytes(params ckks.Parameters, level, count int) int {
	return count * polyBytes(params.RingQ().AtLevel(level))
}

// AppendPolys writes polynomials at a level.
func AppendPolys(data []byte, params ckks.Parameters, level int, polys ...ring.Poly) []byte {
	return appendParts(data, polyParts(params, level, polys))
}

// ReadPolys fills polynomials at a level from exactly their bytes.
func ReadPolys(data []byte, params ckks.Parameters, level int, polys ...ring.Poly) error {
	return readParts(data, "a share", polyParts(params, level, polys))
}

func qpParts(params ckks.Parameters, polys []ringqp.Poly) []part {
	var parts []part
	for _, poly := range polys {
		parts = append(parts, part{params.RingQ(), poly.Q}, part{params.RingP(), poly.P})
	}
	return parts
}

// QPBytes is the size of so many polynomials modulo the whole modulus, special primes included.
func QPBytes(params ckks.Parameters, count int) int {
	return count * (polyBytes(params.RingQ()) + polyBytes(params.RingP()))
}

// AppendQP writes polynomials modulo the whole modulus.
func AppendQP(data []byte, params ckks.Parameters, polys ...ringqp.Poly) []byte {
	return appendParts(data, qpParts(params, polys))
}

// ReadQP fills polynomials modulo the whole modulus from exactly their bytes.
func ReadQP(data []byte, params ckks.Parameters, polys ...ringqp.Poly) error {
	return readParts(data, "a share or key", qpParts(params, polys))
}
