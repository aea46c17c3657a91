package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"

	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/declared"
)

// An applyReport prints the steps while a file is applied.
type applyReport struct {
	c       *commands
	dry     bool
	total   int // number of steps planned
	done    int // number of steps reported
	counts  map[declared.Action]int
	secrets *os.File // file to write secrets to; nil prints them
	project string   // project of the last printed step
	changes []appliedStep
	err     error // first error from writing the report
}

// An appliedStep is a step in JSON.
type appliedStep struct {
	Action  declared.Action   `json:"action"`
	Kind    string            `json:"kind"`
	Project string            `json:"project"`
	Name    string            `json:"name"`
	ID      string            `json:"id,omitempty"`
	Address string            `json:"address,omitempty"`
	Changes []declared.Change `json:"changes,omitempty"`
	Secret  string            `json:"secret,omitempty"`
}

// A savedSecret is a line in the file named by --secrets.
type savedSecret struct {
	Project string `json:"project"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	ID      string `json:"id"`
	Secret  string `json:"secret"`
}

// saveSecret writes the secret of a new thing immediately to the file named by --secrets, so that
// no later error can lose it.
func (r *applyReport) saveSecret(s declared.Done) error {
	if r.secrets == nil || s.Secret == "" {
		return nil
	}
	line, err := json.Marshal(savedSecret{
		Project: s.Project,
		Kind:    s.Kind,
		Name:    s.Name,
		ID:      s.ID,
		Secret:  s.Secret,
	})
	if err != nil {
		return err
	}

	if _, err := r.secrets.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing secrets: %w", err)
	}
	return r.secrets.Sync()
}

// Each action has its own sign and color.
var (
	actionSigns  = map[declared.Action]string{declared.Create: "+", declared.Update: "~", declared.Delete: "-"}
	actionColors = map[declared.Action]string{
		declared.Create: cli.Green,
		declared.Update: cli.Yellow,
		declared.Delete: cli.Red,
	}
)

// add prints a step that was taken or, in a dry run, a step that would be taken.
func (r *applyReport) add(s declared.Done) {
	r.counts[s.Action]++
	r.done++
	if r.secrets != nil {
		s.Secret = "" // the file contains the secret
	}
	switch r.c.Output {
	case "json":
		r.changes = append(r.changes,
			appliedStep{
				Action:  s.Action,
				Kind:    s.Kind,
				Project: s.Project,
				Name:    s.Name,
				ID:      s.ID,
				Address: s.Address,
				Changes: s.Changes,
				Secret:  s.Secret,
			})
	case "id":
		r.printID(s)
	default:
		r.printStep(s)
	}
}

func (r *applyReport) printID(s declared.Done) {
	if s.Action == declared.Create && s.ID != "" {
		r.print("%s\n", s.ID)
	}
	if s.Secret != "" {
		fmt.Fprintf(r.c.Stderr, "secret of %s %s (%s): %s\n", s.Kind, cli.Sanitize(s.Name), cli.ShownOnce, s.Secret)
	}
}

func (r *applyReport) printStep(s declared.Done) {
	if s.Project != r.project {
		r.print("%s\n", r.c.Faint("project "+cli.Sanitize(s.Project)))
		r.project = s.Project
	}

	line := actionSigns[s.Action] + " " + s.Kind + " " + cli.Sanitize(s.Name)
	r.print("  %s\n", r.c.Color(actionColors[s.Action], line))
	for _, ch := range s.Changes {
		if s.Action == declared.Create {
			r.print("      %s: %s\n", ch.Member, cli.Sanitize(ch.New))
		} else {
			r.print("      %s: %s → %s\n", ch.Member, orNone(ch.Old), orNone(ch.New))
		}
	}

	if s.Action == declared.Create && s.ID != "" {
		r.print("      id: %s\n", s.ID)
	}
	if s.Address != "" {
		r.print("      address: %s\n", s.Address)
	}
	if s.Secret != "" {
		r.print("      secret: %s (%s)\n", s.Secret, cli.ShownOnce)
	}
}

func (r *applyReport) print(format string, args ...any) {
	if _, err := fmt.Fprintf(r.c.Stdout, format, args...); err != nil && r.err == nil {
		r.err = err
	}
}

// orNone returns value in printable form, or "(none)" if it is empty.
func orNone(value string) string { return cmp.Or(cli.Sanitize(value), "(none)") }

// end prints the totals. It returns the first write error.
func (r *applyReport) end() error {
	switch {
	case r.c.Output == "json":
		return r.c.PrintJSON(struct {
			Applied bool          `json:"applied"`
			Changes []appliedStep `json:"changes"`
		}{!r.dry, append([]appliedStep{}, r.changes...)})
	case r.c.Output == "id":
		return r.err
	case r.total == 0:
		r.print("nothing differs\n")
		return r.err
	}

	format := "%d created, %d changed, %d removed\n"
	if r.dry {
		format = "%d to create, %d to change, %d to remove\n"
	}
	r.print(format, r.counts[declared.Create], r.counts[declared.Update], r.counts[declared.Delete])
	return r.err
}
