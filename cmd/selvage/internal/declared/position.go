package declared

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/selvage/selvage/internal/problem"
)

// A place is a position in a file: the path of a member, and the node there.
type place struct {
	file, path string
	node       *yaml.Node
}

// child returns the place of a member.
func (p place) child(n *yaml.Node, member string) place {
	if p.path != "" && member != "" {
		member = "." + member
	}
	return place{file: p.file, path: p.path + member, node: n}
}

// index returns the place of a list item.
func (p place) index(n *yaml.Node, i int) place {
	return place{file: p.file, path: fmt.Sprintf("%s[%d]", p.path, i), node: n}
}

// String formats a place as file:line:column: path. It omits the parts that are unknown.
func (p place) String() string {
	s := p.file
	if p.node != nil && p.node.Line > 0 {
		s = fmt.Sprintf("%s:%d:%d", s, p.node.Line, p.node.Column)
	}
	if p.path != "" {
		s += ": " + p.path
	}
	return s
}

// A Fault is a problem at a place in a file.
type Fault struct {
	Where   string // file:line:column: path
	Message string
}

func (f *Fault) Error() string { return f.Where + ": " + f.Message }

func (p place) errorf(format string, args ...any) error {
	return &Fault{p.String(), fmt.Sprintf(format, args...)}
}

// wrap returns err with the place that caused it.
func (p place) wrap(err error) error {
	problems := problem.All(err)
	if len(problems) == 0 {
		return fmt.Errorf("%s: %w", p, err)
	}
	var all []error
	for _, one := range problems {
		all = append(all, p.errorf("%s", one.Message))
	}
	return errors.Join(all...)
}

// blame returns the problems in err, each with the place of the member that caused it.
func (e entry) blame(err error) error {
	problems := problem.All(err)
	if len(problems) == 0 && err != nil {
		return e.wrap(err)
	}
	var all []error
	for _, p := range problems {
		all = append(all, e.placeOf(p.Param).errorf("%s", p.Message))
	}
	return errors.Join(all...)
}

// memberNames maps parameters in problems to the members for them, if their names differ.
var memberNames = map[string]string{"acr": "require_acr"}

// placeOf returns the place of the member that param names. If param names an item of a list, it
// returns the place of the whole list.
func (e entry) placeOf(param string) place {
	param, _, _ = strings.Cut(param, ".")
	for _, name := range []string{param, param + "s", memberNames[param]} {
		if n := e.member(name); n != nil && name != "" {
			return e.child(n, name)
		}
	}
	return e.place
}
