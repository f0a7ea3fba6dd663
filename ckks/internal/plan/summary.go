package plan

import (
	"fmt"

	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/network"
	"privet/ckks/internal/params"
	"privet/ckks/internal/wire"
)

// Summary is a plan for people and other programs.
type Summary struct {
	Parameters params.Set `json:"parameters"`
	LogQP      float64    `json:"log_qp"`
	Budget     float64    `json:"log_qp_limit"`
	Batch      int        `json:"batch"`
	Groups     int        `json:"groups"`
	Keys       int        `json:"keys"`
	// Refreshes is how many ciphertexts are refreshed, Floor the level that they are refreshed from.
	Refreshes int     `json:"refreshes"`
	Floor     int     `json:"floor"`
	Layers    []Layer `json:"layers"`
	// MostResult is the largest magnitude of a result that cannot wrap around.
	MostResult float64 `json:"most_result"`
	// Statistical says that results are flooded until they tell nothing else; see Shared.
	Statistical bool `json:"statistical"`
	// Security has all keys that are ever sent, and the flooding.
	Security Security `json:"security"`
	// OfflineBytes are sent once: the keys of a client, or the keys and the encrypted model of a server.
	OfflineBytes       int64 `json:"offline_bytes_client"`
	OfflineBytesServer int64 `json:"offline_bytes_server"`
	OnlineBytesClient  int64 `json:"online_bytes_client"`
	OnlineBytesServer  int64 `json:"online_bytes_server"`
	MemoryServer       int64 `json:"memory_bytes_server"`
	// MemoryModel is what of it a server without clients takes, MemoryKeys what each client adds while it has a session, and
	// MemoryWorking what an evaluation adds; their slack is in MemoryModel only.
	MemoryModel   int64 `json:"memory_bytes_model"`
	MemoryKeys    int64 `json:"memory_bytes_keys"`
	MemoryWorking int64 `json:"memory_bytes_working"`
	MemoryClient  int64 `json:"memory_bytes_client"`
}

// Layer is one line of a plan.
type Layer struct {
	Name        string `json:"name"`
	Operator    string `json:"operator"`
	Packing     string `json:"packing"`
	Ciphertexts int    `json:"ciphertexts"`
	Level       int    `json:"level"`
	Products    int    `json:"products"`
	Rotations   int    `json:"rotations"`
	// Refresh is what of the layer is refreshed: "argument", "value", "both" or nothing.
	Refresh string `json:"refresh"`
}

// Summary describes the plan.
func (p *Plan) Summary() Summary {
	s := Summary{
		Parameters: p.Set, LogQP: p.Set.LogQP(), Budget: params.Budget(p.Set.LogN),
		Batch: p.Batch, Groups: p.Groups, Keys: len(p.Rotations),
		Refreshes: p.Refreshes(), Floor: p.Floor, Security: p.Security(),
		MostResult: params.MostResult,
	}
	for index, node := range p.network.Nodes {
		layout := p.Layouts[index]
		line := Layer{
			Name: node.Name, Operator: operator(node), Packing: layout.Name,
			Ciphertexts: layout.Ciphertexts, Level: p.Made[index], Refresh: p.refreshed(index),
		}
		for _, transforms := range p.Transforms[index] {
			for _, transform := range transforms {
				counts := transform.Count()
				line.Products += counts.Products
				line.Rotations += counts.Hoisted + counts.Rotations
			}
		}
		s.Layers = append(s.Layers, line)
	}
	p.fillSizes(&s)
	return s
}

func (p *Plan) fillSizes(s *Summary) {
	built, err := p.Set.Build()
	if err != nil {
		return // sizes are unknown of parameters that nobody will use
	}
	memory := p.Memory()
	s.MemoryServer = memory.Server()
	s.MemoryModel = Memory{Plaintexts: memory.Plaintexts}.Server()
	s.MemoryKeys, s.MemoryWorking = memory.Keys, memory.Working
	sent, received := p.Ciphertexts()
	s.OnlineBytesClient = int64(sent) * int64(wire.SeededBytes(built, built.MaxLevel()))
	s.OnlineBytesServer = int64(received) * int64(wire.ResultBytes(built, p.Set.Floor()))
	s.OfflineBytes = int64(wire.SeededBytes(built, p.ZeroLevel()))
	for _, level := range p.Rotations {
		s.OfflineBytes += int64(wire.KeyBytes(built, level))
	}
	if p.RelinearisationLevel >= 0 {
		s.Keys++
		s.OfflineBytes += int64(wire.KeyBytes(built, p.RelinearisationLevel))
	}
	// A client holds one key and a few ciphertexts at a time.
	s.MemoryClient = programBytes + 4*p.KeyBytes(p.Set.Depth)
	if p.Circuit != nil {
		largest := int64(0)
		for _, key := range p.Circuit.Keys() {
			size := int64(p.Circuit.Size(key))
			s.Keys++
			s.OfflineBytes += size
			largest = max(largest, size)
		}
		s.MemoryClient += 6 * largest
	}
	s.Statistical = p.Holders > 0
	if p.network.Known {
		p.fillKnown(s, built)
	}
}

// fillKnown fills in the sizes of an encrypted model that the client evaluates.
func (p *Plan) fillKnown(s *Summary, built ckks.Parameters) {
	sealed := func(level int) int { return wire.SeededBytes(built, level) }
	s.OfflineBytes, s.OfflineBytesServer = 0, s.OfflineBytes+int64(p.ModelBytes(sealed))
	s.MemoryClient, s.MemoryServer = p.CohortMemory(), p.OwnerMemory()
	s.MemoryModel, s.MemoryKeys, s.MemoryWorking = p.OwnerMemory(), p.OwnerSession(), p.KeyBytes(p.Set.Depth)
	s.OnlineBytesClient, s.OnlineBytesServer = 0, 0
	for _, index := range p.outputs() {
		count := int64(p.Layouts[index].Ciphertexts * p.Groups)
		s.OnlineBytesClient += count * int64(wire.ResultBytes(built, p.Set.Floor()))
		s.OnlineBytesServer += count * int64(wire.OpenedBytes(built, p.Set.Floor(), p.Period(index)))
	}
	for _, point := range p.Points() {
		count := int64(p.Layouts[point.Node].Ciphertexts * p.Groups)
		s.OnlineBytesClient += count * int64(wire.MaskedBytes(built, p.Floor, p.Period(point.Node)))
		s.OnlineBytesServer += count * int64(wire.SeededBytes(built, point.Level))
	}
}

// ModelBytes is the size of the encrypted matrices and biases, in ciphertexts whose size `sealed` tells by their level.
func (p *Plan) ModelBytes(sealed func(level int) int) int {
	total := 0
	for index, node := range p.network.Nodes {
		for argument, transforms := range p.Transforms[index] {
			if len(transforms) == 0 || node.Public {
				continue
			}
			level := p.Entering[index][argument]
			for _, transform := range transforms {
				total += len(transform.Diagonals) * sealed(level)
			}
			total += p.Layouts[index].Ciphertexts * sealed(level-1)
		}
	}
	return total
}

func (p *Plan) refreshed(index int) string {
	switch {
	case p.Arguments[index] && p.Values[index]:
		return "both"
	case p.Arguments[index]:
		return "argument"
	case p.Values[index]:
		return "value"
	}
	return ""
}

func operator(node network.Node) string {
	switch {
	case node.Kind == network.Input:
		return "input"
	case node.Kind == network.Output || node.Kind == network.Linear:
		return "linear"
	case node.Kind == network.Product:
		return "product"
	case node.Degree == 2:
		return "linear, square"
	}
	return fmt.Sprintf("linear, polynomial of degree %d", node.Degree)
}
