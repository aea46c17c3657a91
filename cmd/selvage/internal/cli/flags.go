package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage/selvage/internal/span"
	"github.com/selvage/selvage/internal/suggest"
)

// FlagError returns a usage error that explains what is wrong with a flag.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		needs := errors.Unwrap(invalid).Error()
		switch f.Value.Type() {
		case "bool":
			needs = "needs true or false"
		case "int", "int64":
			needs = "needs a whole number"
		}
		return Usagef("--%s %s; it is %q", f.Name, needs, invalid.GetValue())
	case !errors.As(err, &unknown):
		return Usagef("%w; `%s --help` lists the flags", err, cmd.CommandPath())
	}

	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	name := "--" + unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		name = "-" + unknown.GetSpecifiedName()
	}
	if name == "--version" {
		return Usagef("`%s` has no flag --version; `%s version` prints the version",
			cmd.CommandPath(), cmd.Root().Name())
	}
	hint := suggest.MeantOr(name, names, fmt.Sprintf("`%s --help` lists the flags", cmd.CommandPath()))
	return Usagef("`%s` has no flag %s%s", cmd.CommandPath(), name, hint)
}

// Need returns a usage error that names the missing flags, or nil if all are set.
func Need(cmd *cobra.Command, flags ...string) error {
	var errs []error
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); !f.Changed {
			usage := strings.ReplaceAll(f.Usage, "`", "")
			errs = append(errs, Usagef("%s needs --%s: %s", Name(cmd), name, usage))
		}
	}
	return errors.Join(errs...)
}

// Text returns the value of a flag, or nil if the flag is not set.
func Text(cmd *cobra.Command, flag string) *string {
	f := cmd.Flags().Lookup(flag)
	if f == nil || !f.Changed {
		return nil
	}
	v := f.Value.String()
	return &v
}

// Bool returns the value of a boolean flag, or nil if the flag is not set.
func Bool(cmd *cobra.Command, flag string) *bool {
	v := Text(cmd, flag)
	if v == nil {
		return nil
	}
	yes := *v == "true"
	return &yes
}

// Int returns the value of a flag, or nil if it is not set.
func Int(cmd *cobra.Command, flag string) *int {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	n, _ := cmd.Flags().GetInt(flag)
	return &n
}

// Texts returns the values of a flag that may be repeated, or nil if the flag is not set.
func Texts(cmd *cobra.Command, flag string) *[]string {
	f := cmd.Flags().Lookup(flag)
	if f == nil || !f.Changed {
		return nil
	}
	values := f.Value.(pflag.SliceValue).GetSlice()
	return &values
}

// Span returns the value of a flag that holds a length of time.
func Span(cmd *cobra.Command, flag string) time.Duration {
	return cmd.Flags().Lookup(flag).Value.(*span.Span).Length
}

// Set copies the value of a flag to a field, if the flag is set.
func Set[T ~string](cmd *cobra.Command, flag string, to *T) {
	if v := Text(cmd, flag); v != nil {
		*to = T(*v)
	}
}

// SetBool copies the value of a boolean flag to a field, if the flag is set.
func SetBool(cmd *cobra.Command, flag string, to *bool) {
	if v := Bool(cmd, flag); v != nil {
		*to = *v
	}
}

// SetTexts copies the values of a repeatable flag to a field, if the flag is set.
func SetTexts(cmd *cobra.Command, flag string, to *[]string) {
	if v := Texts(cmd, flag); v != nil {
		*to = *v
	}
}

// ProjectUsage describes the flag --project of commands that need a project.
const ProjectUsage = "`id` of the project (optional if there is only one)"

const yesUsage = "do not ask for confirmation"

// AddYes adds the flag --yes. If it is set, Confirm and Ask ask nothing.
func AddYes(cmd *cobra.Command) { cmd.Flags().BoolP("yes", "y", false, yesUsage) }
