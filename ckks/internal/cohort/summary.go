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
	// MemberBytes are what each member sends for keys, refreshes and results, RefreshBytes the part for refreshes,
	// ModelBytes what the owner sends beside, CoordinatorBytes what the coordinator sends to all members together.
	MemberBytes      int64 `json:"member_bytes"`
	RefreshBytes     int64 `json:"refresh_bytes"`
	ModelBytes       int64 `json:"model_bytes"`
	CoordinatorBytes int64 `json:"coordinator_bytes"`
	// MemberBytesOnline and CoordinatorBytesOnline are the parts of it for refreshes and results.
	MemberBytesOnline      int64 `json:"member_bytes_online"`
	CoordinatorBytesOnline int64 `json:"coordinator_bytes_online"`
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
	refreshes := 0
	for _, refresh := range s.refreshes() {
		refreshes += sums.RefreshSize(s.Plan.Floor, refresh.Level)
	}
	online := refreshes + len(s.results())*sums.SwitchSize(s.Plan.Set.Floor())
	made.MemberBytes, made.MemberBytesOnline = int64(shares+online), int64(online)
	made.RefreshBytes = int64(refreshes)
	made.ModelBytes = s.modelBytes()
	made.CoordinatorBytesOnline = s.coordinatorBytesOnline()
	made.CoordinatorBytes = s.coordinatorBytesOffline(sizes.First) + made.CoordinatorBytesOnline
	made.OfflineBytes = int64(wire.QPBytes(s.Params, 2))
	sent, _ := s.Plan.Ciphertexts()
	made.OnlineBytesClient = int64(sent) * int64(wire.PolysBytes(s.Params, s.Params.MaxLevel(), 2))
	made.MemoryServer = s.Plan.CohortMemory()
	// All that a coordinator holds is of one inference.
	made.MemoryModel = plan.Memory{}.Server()
	made.MemoryKeys = made.MemoryServer - made.MemoryModel - made.MemoryWorking
	return made
}

// coordinatorBytesOffline are the common randomness, the sums of the public key and of the relinearisation key's first round, and
// the client's public key, to each member. Statements, some kilobytes, are left out.
func (s *Setup) coordinatorBytesOffline(first int) int64 {
	return int64(s.Members * (s.Members*collective.ContributionBytes + first + wire.QPBytes(s.Params, 3)))
}

// coordinatorBytesOnline are parts to refresh and results, to each member.
func (s *Setup) coordinatorBytesOnline() int64 {
	each := 0
	for range s.refreshes() { // a model without any may have no level to refresh at
		each += wire.PolysBytes(s.Params, s.Plan.Floor, 1)
	}
	each += len(s.results()) * wire.ResultBytes(s.Params, s.Plan.Set.Floor())
	return int64(s.Members * each)
}

// modelBytes are the encrypted matrices, biases and coefficients in the order of evaluate.Assemble.
func (s *Setup) modelBytes() int64 {
	total := s.Plan.ModelBytes(func(level int) int { return wire.PolysBytes(s.Params, level, 2) })
	for _, node := range s.Network.Nodes {
		if node.Kind == network.Polynomial && node.Degree != 2 {
			total += wire.SeriesBytes(node.Degree)
		}
	}
	return int64(total)
}
