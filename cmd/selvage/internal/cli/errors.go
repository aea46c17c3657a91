package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage/selvage/internal/problem"
)

// These are the exit statuses of failed commands. An error with a method ExitStatus sets its own.
const (
	exitFailed       = 1
	exitUsage        = 2
	exitNotFound     = 3
	exitUnauthorized = 4
)

// A UsageError is a mistake in the command line or the configuration.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usage returns err as a UsageError.
func Usage(err error) error { return UsageError{err} }

// Usagef formats a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// NotFoundf formats an error about something that does not exist.
func NotFoundf(format string, args ...any) error {
	return problem.New(problem.NotFound, "not_found", format, args...)
}

// ExitStatus returns the exit status of a command that failed with err.
func ExitStatus(err error) int {
	var own interface{ ExitStatus() int }
	var usage UsageError
	switch {
	case errors.As(err, &own):
		return own.ExitStatus()
	case errors.As(err, &usage), errors.Is(err, problem.Invalid), errors.Is(err, problem.Malformed):
		return exitUsage
	case errors.Is(err, problem.NotFound):
		return exitNotFound
	case errors.Is(err, problem.Unauthenticated), errors.Is(err, problem.Forbidden):
		return exitUnauthorized
	}
	return exitFailed
}

// failedIn is an error of a command.
type failedIn struct {
	error
	cmd *cobra.Command
}

func (e failedIn) Unwrap() error { return e.error }

// FailedIn returns the error of a command, for Explain, which names flags of the command. It returns
// nil if err is nil.
func FailedIn(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return failedIn{err, cmd}
}

// Explain returns the message of an error for the person who typed the command. It names flags
// instead of the parameters of the API. If something is unavailable, the message contains the cause,
// which clients of the API must not see.
func Explain(err error) string {
	problems := problem.All(err)
	if len(problems) == 0 || errors.Is(err, problem.Unavailable) {
		return err.Error()
	}
	var failed failedIn
	has := func(flag string) bool { return failed.cmd.Flags().Lookup(flag) != nil }
	if !errors.As(err, &failed) {
		has = func(string) bool { return true }
	}
	var lines []string
	for _, p := range problems {
		lines = append(lines, nameFlag(p, has)+hint(p))
	}
	return strings.Join(lines, "\n")
}

// flagOf maps parameters to the flag or argument that sets them, if its name differs.
var flagOf = map[string]string{
	"password":          "the password (typed, or from --password-stdin)",
	"allowed_addresses": "--address",
	"address_id":        "--address",
	"expire_at":         "--expires-in",
	"expires_at":        "--expires-in",
	"events":            "--event",
	"prefixes":          "--prefix",
	"ip_auth":           "--allow-from",
	"codecs":            "--codec",
	"number":            "the number",
	"outbound_prefixes": "--outbound-prefix",
}

// nameFlag returns the message of a problem, naming the flag instead of the parameter. It changes
// "codecs.0 must be a codec" to "--codec must be a codec", and "this codec is unknown" to "--codec: this
// codec is unknown". has reports whether the command has a flag.
func nameFlag(p *problem.Error, has func(flag string) bool) string {
	if p.Param == "" {
		return p.Message
	}
	flag, ok := flagOf[p.Param]
	if !ok {
		flag = "--" + flagNamed(strings.ReplaceAll(p.Param, "_", "-"), has)
	}

	subject, rest, _ := strings.Cut(p.Message, " ")
	subject = itemNumber.ReplaceAllString(subject, "")
	if strings.EqualFold(subject, p.Param) && rest != "" {
		return flag + " " + rest
	}
	return flag + ": " + p.Message
}

// flagNamed returns the flag for a parameter. The flags for a list have the singular, such as scope
// for scopes, or begin with add. If a command has both, the flag with the singular is a filter.
func flagNamed(name string, has func(flag string) bool) string {
	one := strings.TrimSuffix(name, "s")
	for _, flag := range []string{name, "add-" + one, one} {
		if has(flag) {
			return flag
		}
	}
	return name
}

// itemNumber matches the number of a list's item after the name of a parameter. A flag sets the whole
// list.
var itemNumber = regexp.MustCompile(`\.\d+$`)

// hint returns advice on how to resolve a problem, or "".
func hint(p *problem.Error) string {
	switch {
	case p.Param == "allowed_addresses":
		return "; `selvage address list` shows them"
	case p.Code == "not_published":
		return "; use --now not to wait"
	}

	thing, missing := strings.CutSuffix(p.Message, " not found")
	if p.Kind != problem.NotFound || !missing {
		return ""
	}
	noun := strings.ToLower(strings.TrimPrefix(thing, "API "))
	switch noun {
	case "ring key":
		noun = "ring"
	case "ingest key":
		noun = "ingest-key"
	case "sip gateway":
		noun = "gateway"
	case "phone number":
		noun = "number"
	case "upstream provider":
		noun = "upstream"
	case "project", "operator", "key", "client", "subscriber", "address", "call", "room session", "recording",
		"webhook", "resource", "mail":
	default:
		return ""
	}
	return fmt.Sprintf("; `selvage %s list` shows existing ones", noun)
}
