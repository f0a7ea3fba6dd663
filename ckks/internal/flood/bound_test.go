package flood

import (
	"strings"
	"testing"
)

// TestBitsThatAreTooFewAreNotRoundedUp would read "by 16 bits only, not 16".
func TestBitsThatAreTooFewAreNotRoundedUp(t *testing.T) {
	if message := tooWeak(15.97).Error(); !strings.Contains(message, "by 15 bits only, not 16") {
		t.Error(message)
	}
}
