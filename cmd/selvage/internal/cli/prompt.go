package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/selvage/selvage/cmd/selvage/internal/console"
)

// maxSecret is the maximum length of a password or token read from stdin.
const maxSecret = 64 << 10

// Confirm asks a user at a terminal to type the name of the thing to be deleted. Without a
// terminal, or with --yes, it asks nothing and returns nil. If the user types something else, it
// returns an error.
func (e *Env) Confirm(cmd *cobra.Command, what, name string) error {
	return e.Ask(cmd, what, "Type its name to continue: ", name)
}

// Ask is like Confirm, but the caller chooses the prompt and the word to type.
func (e *Env) Ask(cmd *cobra.Command, what, prompt, word string) error {
	yes, _ := cmd.Flags().GetBool("yes")
	if yes || !console.IsTerminal(e.Stdin) {
		return nil
	}
	fmt.Fprintf(e.Stderr, "%s\n%s", Sanitize(what), prompt)
	line, err := bufio.NewReader(e.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading answer: %w", err)
	}
	if strings.TrimSpace(line) != word {
		return fmt.Errorf("the answer is not %q: nothing was changed", word)
	}
	return nil
}

// ReadSecret reads the first line of stdin. what names the secret in errors.
func (e *Env) ReadSecret(what string) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(e.Stdin, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", what, err)
	}
	if len(raw) > maxSecret {
		return "", Usagef("the %s on stdin is longer than %d bytes", what, maxSecret)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" {
		return "", Usagef("no %s on stdin; pipe it in, such as with `printf %%s \"$SECRET\" | selvage …`", what)
	}
	return line, nil
}

// ReadPassword returns the password to set, or nil if there is none. With --password-stdin it reads
// the first line of stdin. Otherwise, if prompt is set, it asks a user at a terminal.
func (e *Env) ReadPassword(cmd *cobra.Command, prompt bool) (*string, error) {
	if fromStdin, _ := cmd.Flags().GetBool("password-stdin"); fromStdin {
		secret, err := e.ReadSecret("password")
		if err != nil {
			return nil, err
		}
		return &secret, nil
	}
	f, ok := e.Stdin.(*os.File)
	if !prompt || !ok {
		return nil, nil
	}
	if !console.IsTerminal(f) {
		if isPiped(f) {
			fmt.Fprintln(e.Stderr, "no password is set; use --password-stdin to read one from stdin")
		}
		return nil, nil
	}

	fmt.Fprint(e.Stderr, "Password (empty for none): ")
	typed, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(e.Stderr)
	if err != nil {
		return nil, fmt.Errorf("reading password: %w", err)
	}
	if len(typed) == 0 {
		return nil, nil
	}
	secret := string(typed)
	return &secret, nil
}

// isPiped reports whether f is a pipe or a regular file. The file may be empty.
func isPiped(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}
