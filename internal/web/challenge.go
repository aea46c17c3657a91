package web

import (
	"fmt"
	"strings"

	"github.com/selvage/selvage/internal/problem"
)

// Describe adds a description of err to a challenge, since bodies of 401 responses are all the same.
// err must contain a problem.
func Describe(challenge string, err error) string {
	p := problem.First(err)
	text, separator := p.Message, ", "
	if p.Told {
		text = p.Cause
	}
	if !strings.Contains(challenge, " ") { // the challenge is only a scheme
		separator = " "
	}
	return fmt.Sprintf("%s%serror_description=%q", challenge, separator, text)
}
