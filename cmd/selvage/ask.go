package main

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

// maxInput bounds what is read from stdin: a password or a token.
const maxInput = 64 << 10

// text returns the value of a flag, nil if it was not given.
func text(cmd *cobra.Command, flag string) *string {
	f := cmd.Flags().Lookup(flag)
	if f == nil || !f.Changed {
		return nil
	}
	v := f.Value.String()
	return &v
}

func addYes(cmd *cobra.Command) { cmd.Flags().BoolP("yes", "y", false, "do not ask") }

// confirm lets somebody at a terminal type a name before something is gone for
// ever. A program is not asked.
func (c *cli) confirm(cmd *cobra.Command, what, name string) error {
	return c.ask(cmd, what, "Type its name to go on: ", name)
}

// ask lets somebody at a terminal type a word before something is gone for ever.
func (c *cli) ask(cmd *cobra.Command, what, prompt, word string) error {
	if yes, _ := cmd.Flags().GetBool("yes"); yes || !console.IsTerminal(c.stdin) {
		return nil
	}
	fmt.Fprintf(c.stderr, "%s\n%s", harmless(what), prompt)
	line, err := bufio.NewReader(c.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading answer: %w", err)
	}
	if strings.TrimSpace(line) != word {
		return fmt.Errorf("that is not %q; nothing was done", word)
	}
	return nil
}

// secret reads the first line of stdin.
func (c *cli) secret(what string) (string, error) {
	raw, err := io.ReadAll(io.LimitReader(c.stdin, maxInput+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", what, err)
	}
	if len(raw) > maxInput {
		return "", usagef("the %s on stdin is longer than %d bytes", what, maxInput)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" {
		return "", usagef("there is no %s on stdin; pipe it in, such as with `printf %%s \"$SECRET\" | selvage …`", what)
	}
	return line, nil
}

// password returns the password to set: from stdin where --password-stdin says
// so, from a prompt at a terminal, else none.
func (c *cli) password(cmd *cobra.Command, prompt bool) (*string, error) {
	if fromStdin, _ := cmd.Flags().GetBool("password-stdin"); fromStdin {
		secret, err := c.secret("password")
		return &secret, err
	}
	f, ok := c.stdin.(*os.File)
	if !prompt || !ok {
		return nil, nil
	}
	if !console.IsTerminal(f) {
		if isPiped(f) {
			fmt.Fprintln(c.stderr, "it gets no password; one on stdin is read with --password-stdin")
		}
		return nil, nil
	}
	fmt.Fprint(c.stderr, "Password (empty for none): ")
	typed, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(c.stderr)
	if err != nil {
		return nil, fmt.Errorf("reading password: %w", err)
	}
	if len(typed) == 0 {
		return nil, nil
	}
	secret := string(typed)
	return &secret, nil
}

// isPiped reports whether somebody gives something on stdin, be it nothing.
func isPiped(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}
