package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/selvage/selvage/cmd/selvage/internal/datadir"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
)

// DemoText returns what the first start of a data directory has told of its demo.
func DemoText(dir string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, firstRunFile))
	if err != nil {
		return nil, fmt.Errorf("reading the demo: %w", err)
	}
	return text, nil
}

// HasDemo reports whether there is a demo, or what was begun of one.
func (a *App) HasDemo() (bool, error) {
	_, err := DemoText(a.Config.Data)
	if !errors.Is(err, fs.ErrNotExist) {
		return err == nil, err
	}
	_, err = os.Stat(a.unfinished())
	return err == nil, nil
}

// ResetDemo makes the demo anew, beside a running server or without one, and gives what to
// tell about it. Where it is interrupted it goes on from there.
func (a *App) ResetDemo(ctx context.Context) (text string, err error) {
	old, err := DemoText(a.Config.Data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := a.undo(ctx); err != nil {
		return "", fmt.Errorf("removing an unfinished demo: %w", err)
	}
	if err := a.deleteDemo(ctx, old); err != nil {
		return "", fmt.Errorf("deleting the demo: %w", err)
	}
	file := filepath.Join(a.Config.Data, firstRunFile)
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("deleting the demo: %w", err)
	}
	d, err := a.seed(ctx)
	if err != nil {
		return "", fmt.Errorf("making the demo: %w", err)
	}
	if d.setup, err = a.oldSetupLink(ctx, old); err != nil {
		return "", err
	}
	if err := a.keepDemo(d); err != nil {
		return "", err
	}
	text = a.describe(d)
	return text, errors.Join(datadir.Replace(file, []byte(text), 0o600), os.Remove(a.unfinished()))
}

// What is read back of first-run.txt: the project, which stands first, and the link.
var (
	demoProject = regexp.MustCompile(`(?m)^  id +([0-9a-f-]{36})$`)
	demoSetup   = regexp.MustCompile(`(?m)^  setup link +(\S+)$`)
)

// deleteDemo deletes the project that the text of a first start tells of, be it there
// or not.
func (a *App) deleteDemo(ctx context.Context, text []byte) error {
	m := demoProject.FindSubmatch(text)
	if m == nil {
		return nil
	}
	if err := a.Fabric.DeleteProject(ctx, string(m[1])); !errors.Is(err, problem.NotFound) {
		return err
	}
	return nil
}

// oldSetupLink returns the link for the first operator, which only the text of the first
// start has; "" where there is an operator.
func (a *App) oldSetupLink(ctx context.Context, text []byte) (string, error) {
	some, err := a.Operators.List(ctx, page.Query{Size: 1})
	if err != nil || len(some.Items) > 0 {
		return "", err
	}
	if m := demoSetup.FindSubmatch(text); m != nil {
		return string(m[1]), nil
	}
	return a.setupLink(ctx)
}
