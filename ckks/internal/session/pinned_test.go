package session

import (
	"strings"
	"testing"
)

func TestAnotherProgramThanThePinnedOneIsNotEvenRead(t *testing.T) {
	terms := Terms{Scenario: EncryptedData}
	_, err := arrangePinned([]byte("{ no program"), terms, strings.Repeat("0", 64))
	if err == nil || !strings.Contains(err.Error(), "the server offers program") {
		t.Errorf("%v", err)
	}
	// The control: without a pin it is read.
	_, err = arrangePinned([]byte("{ no program"), terms, "")
	if err == nil || !strings.Contains(err.Error(), "not readable") {
		t.Errorf("%v", err)
	}
}
