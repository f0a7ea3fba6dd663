package cohort

import (
	"privet/ckks/internal/collective"
	"privet/ckks/internal/network"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/wire"
)

// Summary is a cohort's plan for people and other programs.
type Summary struct {
	plan.Summary
	Members int `json:"members"`
	// MemberBytes are what each member sends for keys and refreshes, ModelBytes what the owner sends beside.
	MemberBytes int64 `json:"member_bytes"`
	ModelBytes  int64 `json:"model_bytes"`
}

// Summary describes the plan with what a cohort's parties send and hold.
func (s *Setup) Summary() Summary {
	made := Summary{Summary: s.Plan.Summary(), Members: s.Members}
	sums := collective.NewCoordinator(s.Params, nil, s.Members)
	sizes := sums.Sizes()
	shares := collective.ContributionBytes + sizes.PublicKey + sizes.First + sizes.Second
	for _, level := range s.Plan.Rotations {
		shares += sums.RotationSize(level)
	}
	for _, refresh := range s.refreshes() {
		shares += sums.RefreshSize(s.Plan.Floor, refresh.level)
	}
	shares += len(s.results()) * sums.SwitchSize(s.Plan.Set.Floor())
	made.MemberBytes = int64(shares)
	made.ModelBytes = s.modelBytes()
	made.OfflineBytes = 0
	sent, _ := s.Plan.Ciphertexts()
	made.OnlineBytesClient = int64(wire.QPBytes(s.Params, 2)) + int64(sent)*int64(wire.PolysBytes(s.Params, s.Params.MaxLevel(), 2))
	made.MemoryServer = s.Plan.CohortMemory()
	return made
}

// modelBytes are the encrypted matrices, biases and coefficients in the order of evaluate.Assemble.
func (s *Setup) modelBytes() int64 {
	total := 0
	for index, node := range s.Network.Nodes {
		for argument, transforms := range s.Plan.Transforms[index] {
			level := s.Plan.Entering[index][argument]
			if node.Public {
				continue
			}
			for _, transform := range transforms {
				total += len(transform.Diagonals) * wire.PolysBytes(s.Params, level, 2)
			}
			if transforms != nil {
				total += s.Plan.Layouts[index].Ciphertexts * wire.PolysBytes(s.Params, level-1, 2)
			}
		}
		if node.Kind == network.Polynomial && node.Degree != 2 {
			total += wire.SeriesBytes(node.Degree)
		}
	}
	return int64(total)
}
