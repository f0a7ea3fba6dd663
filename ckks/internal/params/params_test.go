package params

import (
	"math"
	"strings"
	"testing"
)

func TestMoreBitsThanTheTableAllowsAreRefused(t *testing.T) {
	for logN := MinLogN; logN <= MaxLogN; logN++ {
		if err := CheckSecure(logN, Budget(logN)); err != nil {
			t.Error(err)
		}
		if err := CheckSecure(logN, Budget(logN)+0.1); err == nil || !strings.Contains(err.Error(), "not secure") {
			t.Errorf("2^%d: %v", logN, err)
		}
	}
	for _, logN := range []int{0, 10, 11, 17} {
		if CheckSecure(logN, 20) == nil {
			t.Errorf("degree 2^%d was allowed", logN)
		}
	}
}

func TestBuildRefusesWhatIsInsecure(t *testing.T) {
	set, ok := Choose(5, 13)
	if !ok {
		t.Fatal("five levels fit degree 2^13")
	}
	for _, change := range []func(*Set){
		func(s *Set) { s.Depth++ },
		func(s *Set) { s.Specials++ },
		func(s *Set) { s.BaseBits++ },
		func(s *Set) { s.LogN-- },
	} {
		worse := set
		change(&worse)
		if _, err := worse.Build(); err == nil {
			t.Errorf("%+v was built", worse)
		}
	}
}

func TestChosenParametersAreSecureAndDistinct(t *testing.T) {
	for depth := 1; depth <= 30; depth++ {
		for logN := MinLogN; logN <= 15; logN++ {
			set, ok := Choose(depth, logN)
			if !ok {
				continue
			}
			built, err := set.Build()
			if err != nil {
				t.Fatalf("depth %d, degree 2^%d: %v", depth, logN, err)
			}
			if built.LogQP() > Budget(logN) || built.MaxLevel() != depth || built.MaxSlots() != set.Slots() {
				t.Errorf("depth %d, degree 2^%d: %v bits, %d levels", depth, logN, built.LogQP(), built.MaxLevel())
			}
			seen := map[uint64]bool{}
			for _, prime := range append(built.Q(), built.P()...) {
				if seen[prime] {
					t.Errorf("prime %d is there twice", prime)
				}
				seen[prime] = true
			}
			if drift := float64(built.Q()[depth]) / set.Scale(); math.Abs(drift-1) > 0.2 {
				t.Errorf("depth %d, degree 2^%d: the last prime is %v of the scale", depth, logN, drift)
			}
		}
	}
}
