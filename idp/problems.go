package idp

import (
	"errors"

	"github.com/selvage/selvage/internal/problem"
)

// problems collects the problems of several settings, so that one error can list them all.
type problems []error

// add adds an error about the setting param.
func (p *problems) add(param, format string, args ...any) {
	*p = append(*p, problem.BadParam(param, format, args...))
}

// err returns all problems as one error, or nil if there are none.
func (p *problems) err() error { return errors.Join(*p...) }
