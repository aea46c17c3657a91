package database

import (
	"errors"
	"strings"

	"github.com/selvage/selvage/internal/problem"
)

// Plainly says an error in a line, without what it came from.
func Plainly(err error) string {
	var unfit *Unfit
	if errors.As(err, &unfit) {
		return unfit.Error()
	}
	if p := problem.First(err); p != nil {
		return p.Message
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
