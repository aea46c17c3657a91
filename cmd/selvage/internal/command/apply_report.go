package command

import (
	"encoding/json"
	"fmt"
	"github.com/selvage/selvage/cmd/selvage/internal/cli"
	"github.com/selvage/selvage/cmd/selvage/internal/declared"
	"os"
)

// An appliance shows the steps of a file that is applied.
type appliance struct {
	c       *commands
	dry     bool
	total   int
	done    int
	secrets *os.File // nil shows them
	project string   // whose steps are shown
	counts  map[declared.Action]int
	changes []appliedStep
	err     error // of the first write that failed
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

// A keptSecret is a line of the file of --secrets.
type keptSecret struct {
	Project string `json:"project"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	ID      string `json:"id"`
	Secret  string `json:"secret"`
}

// keep writes the secret of what was made into the file of secrets, before anything else
// can go wrong.
func (o *appliance) keep(s declared.Done) error {
	if o.secrets == nil || s.Secret == "" {
		return nil
	}
	line, err := json.Marshal(keptSecret{s.Project, s.Kind, s.Name, s.ID, s.Secret})
	if err != nil {
		return err
	}
	if _, err := o.secrets.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing secrets: %w", err)
	}
	return o.secrets.Sync()
}

// How the steps begin, and under which SGR they are shown.
var (
	signs   = map[declared.Action]string{declared.Create: "+", declared.Update: "~", declared.Delete: "-"}
	colours = map[declared.Action]string{declared.Create: "32", declared.Update: "33", declared.Delete: "31"}
)

// show shows a step: as it will be done, or was.
func (o *appliance) show(s declared.Done) {
	if o.counts == nil {
		o.counts = make(map[declared.Action]int)
	}
	o.counts[s.Action]++
	o.done++
	secret := s.Secret
	if o.secrets != nil {
		secret = ""
	}
	switch o.c.Output {
	case "json":
		o.changes = append(o.changes, appliedStep{s.Action, s.Kind, s.Project, s.Name, s.ID, s.Address,
			s.Changes, secret})
		return
	case "id":
		if s.Action == declared.Create && s.ID != "" {
			o.print("%s\n", s.ID)
		}
		if secret != "" {
			fmt.Fprintf(o.c.Stderr, "the secret of %s %s (%s): %s\n", s.Kind, cli.Sanitize(s.Name), cli.ShownOnce, secret)
		}
		return
	}
	if s.Project != o.project {
		o.print("%s\n", o.c.Faint("project "+cli.Sanitize(s.Project)))
		o.project = s.Project
	}
	o.print("  %s\n", o.c.Color(colours[s.Action], signs[s.Action]+" "+s.Kind+" "+cli.Sanitize(s.Name)))
	for _, ch := range s.Changes {
		switch {
		case s.Action == declared.Create:
			o.print("      %s: %s\n", ch.Member, cli.Sanitize(ch.New))
		default:
			o.print("      %s: %s → %s\n", ch.Member, nothing(ch.Old), nothing(ch.New))
		}
	}
	if s.Action == declared.Create && s.ID != "" {
		o.print("      id: %s\n", s.ID)
	}
	if s.Address != "" {
		o.print("      address: %s\n", s.Address)
	}
	if secret != "" {
		o.print("      secret: %s (%s)\n", secret, cli.ShownOnce)
	}
}

func (o *appliance) print(format string, args ...any) {
	if _, err := fmt.Fprintf(o.c.Stdout, format, args...); err != nil && o.err == nil {
		o.err = err
	}
}

// nothing marks a value that there is not.
func nothing(value string) string {
	if value == "" {
		return "(none)"
	}
	return cli.Sanitize(value)
}

// end says what was done, or would be.
func (o *appliance) end() error {
	if o.c.Output == "json" {
		return o.c.PrintJSON(struct {
			Applied bool          `json:"applied"`
			Changes []appliedStep `json:"changes"`
		}{!o.dry, append([]appliedStep{}, o.changes...)})
	}
	if o.c.Output == "id" {
		return o.err
	}
	if o.total == 0 {
		o.print("nothing differs\n")
		return o.err
	}
	made, changed, removed := o.counts[declared.Create], o.counts[declared.Update], o.counts[declared.Delete]
	if o.dry {
		o.print("%d to make, %d to change, %d to remove\n", made, changed, removed)
	} else {
		o.print("%d made, %d changed, %d removed\n", made, changed, removed)
	}
	return o.err
}
