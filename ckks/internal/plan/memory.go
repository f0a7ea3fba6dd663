package plan

import (
	"privet/ckks/internal/network"
	"privet/ckks/internal/packing"
)

// Memory is what a plan takes, in bytes and by formula.
type Memory struct {
	// Plaintexts are the encoded matrices, Keys one client's evaluation keys, Working the ciphertexts of an evaluation.
	Plaintexts, Keys, Working int64
}

// slack is how much more than it holds a process takes: what the collector of garbage has not come to, buffers, code.
const (
	slackPercent = 30
	programBytes = 60e6
)

// Server is what a server of one client takes.
func (m Memory) Server() int64 {
	return programBytes + (m.Plaintexts+m.Keys+m.Working)*(100+slackPercent)/100
}

// CohortMemory is what the coordinator of a cohort takes that keeps the whole model.
func (p *Plan) CohortMemory() int64 {
	all, _ := p.sealedBytes()
	return p.evaluating(all)
}

// StreamedMemory is what it takes if it gets each layer when it evaluates it.
func (p *Plan) StreamedMemory() int64 {
	_, largest := p.sealedBytes()
	return p.evaluating(largest)
}

func (p *Plan) evaluating(sealed int64) int64 {
	m := p.Memory()
	m.Plaintexts = p.publicBytes() + sealed
	m.Working += p.waitingBytes()
	return m.Server()
}

// waitingBytes are the values of the other groups while one is at a layer; a cohort evaluates them side by side.
func (p *Plan) waitingBytes() int64 {
	if p.Refresh.Members == 0 {
		return 0
	}
	largest := 0
	for index := range p.network.Nodes {
		for _, transforms := range p.Transforms[index] {
			for _, t := range transforms {
				largest = max(largest, t.From.Ciphertexts+t.To.Ciphertexts)
			}
		}
	}
	return int64((p.Groups-1)*largest) * 2 * int64(p.Set.Depth+1) * p.limbBytes()
}

// sealedBytes are all encrypted matrices, and the largest node's: two polynomials for each diagonal.
func (p *Plan) sealedBytes() (all, largest int64) {
	for index, node := range p.network.Nodes {
		if node.Public {
			continue
		}
		own := int64(0)
		for argument, transforms := range p.Transforms[index] {
			for _, transform := range transforms {
				own += int64(len(transform.Diagonals)) * 2 * p.plaintextBytes(p.Entering[index][argument])
			}
		}
		all, largest = all+own, max(largest, own)
	}
	return all, largest
}

// publicBytes are the masks by which values are rearranged; those of values alike are kept once.
func (p *Plan) publicBytes() int64 {
	total, seen := int64(0), map[string]bool{}
	for index, node := range p.network.Nodes {
		if !node.Public {
			continue
		}
		transform, level := p.Transforms[index][0][0], p.Entering[index][0]
		if key := transform.Name(level); !seen[key] {
			seen[key] = true
			total += int64(len(transform.Diagonals)) * p.plaintextBytes(level)
		}
	}
	return total
}

// OwnerMemory is what the owner of an encrypted model takes: its weights, the largest of which are laid out as diagonals in
// double precision while they are encrypted, and a key at a time.
func (p *Plan) OwnerMemory() int64 {
	entries := 0
	for _, node := range p.network.Nodes {
		for _, expression := range node.Arguments {
			for _, term := range expression.Terms {
				entries += term.Matrix.Entries()
			}
		}
	}
	return programBytes + (12*int64(entries)+diagonals+4*p.KeyBytes(p.Set.Depth))*(100+slackPercent)/100
}

// OwnerSession is what another client adds at the owner of an encrypted model.
func (p *Plan) OwnerSession() int64 { return p.OwnerMemory() / 4 }

// diagonals are those in double precision that are filled at a time.
const diagonals = 8 << 22

// Session is what another client adds.
func (m Memory) Session() int64 { return m.Keys * (100 + slackPercent) / 100 }

// Memory adds up the plan's sizes.
func (p *Plan) Memory() Memory {
	var m Memory
	for index := range p.network.Nodes {
		for argument, transforms := range p.Transforms[index] {
			limbs := int64(p.Entering[index][argument] + 1)
			for _, transform := range transforms {
				m.Plaintexts += int64(len(transform.Diagonals)) * p.plaintextBytes(p.Entering[index][argument])
				m.Working = max(m.Working, p.transformBytes(transform, limbs))
			}
		}
	}
	for _, level := range p.Rotations {
		m.Keys += p.KeyBytes(level)
	}
	if p.RelinearisationLevel >= 0 {
		m.Keys += p.KeyBytes(p.RelinearisationLevel)
	}
	if p.Circuit != nil {
		keys, matrices, working := p.Circuit.Memory()
		m.Keys += keys + matrices
		m.Working += working
	}
	return m
}

// transformBytes are the rotated inputs and the sums of a transform.
func (p *Plan) transformBytes(t *packing.Transform, limbs int64) int64 {
	counts := t.Count()
	ciphertexts := t.From.Ciphertexts + counts.Hoisted + 2*t.To.Ciphertexts + counts.Rotations
	return int64(ciphertexts) * 2 * limbs * p.limbBytes()
}

func (p *Plan) limbBytes() int64 { return 8 << p.Set.LogN }

// plaintextBytes is an encoded diagonal: four bytes a residue for primes of up to 31 bits, five for those of up to 40,
// eight for larger ones.
func (p *Plan) plaintextBytes(level int) int64 {
	base := int64(p.Set.BasePrimes) * residueBytes(p.Set.BaseBits/p.Set.BasePrimes)
	return (base + int64(level-p.Set.Floor())*residueBytes(p.Set.ScaleBits)) << p.Set.LogN
}

func residueBytes(bits int) int64 {
	switch {
	case bits <= 31:
		return 4
	case bits <= 40:
		return 5
	}
	return 8
}

// KeyBytes is an evaluation key for a level, in memory.
func (p *Plan) KeyBytes(level int) int64 {
	return int64(p.Set.Digits(level)) * 2 * int64(p.Set.Limbs(level)+p.Set.Specials) * p.limbBytes()
}

// Ciphertexts is how many ciphertexts a client sends, and how many it gets back, for all groups.
func (p *Plan) Ciphertexts() (sent, received int) {
	for index, node := range p.network.Nodes {
		switch node.Kind {
		case network.Input:
			sent += p.Layouts[index].Ciphertexts * p.Groups
		case network.Output:
			received += p.Layouts[index].Ciphertexts * p.Groups
		}
	}
	return sent, received
}
