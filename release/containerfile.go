package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// A recipe is what a Containerfile says about an image.
type recipe struct {
	config v1.Config
	copies []copiedFile
}

// A copiedFile is a file or an empty directory that a Containerfile copies into the image.
type copiedFile struct {
	from  string // the name in the build context
	to    string // the path in the image, without the leading slash
	mode  int64
	owner int // user and group ID
}

// readRecipe reads a Containerfile that begins with an empty image. It returns an error for
// instructions that only a builder can run, and for those that an image of selvage does not need.
func readRecipe(name string) (r recipe, err error) {
	f, err := os.Open(name)
	if err != nil {
		return recipe{}, err
	}
	defer f.Close()

	parsed, err := parser.Parse(f)
	if err != nil {
		return recipe{}, fmt.Errorf("reading %s: %w", name, err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return recipe{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(stages) != 1 || stages[0].BaseName != "scratch" {
		return recipe{}, fmt.Errorf("%s does not have a single stage FROM scratch", name)
	}

	for _, command := range stages[0].Commands {
		if err := r.add(command); err != nil {
			return recipe{}, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return r, nil
}

// add applies an instruction to the recipe.
func (r *recipe) add(command instructions.Command) error {
	switch c := command.(type) {
	case *instructions.CopyCommand:
		return r.addCopy(c)

	case *instructions.EnvCommand:
		for _, variable := range c.Env {
			r.config.Env = append(r.config.Env, variable.String())
		}
	case *instructions.VolumeCommand:
		r.config.Volumes = setOf(c.Volumes, "")
	case *instructions.ExposeCommand:
		r.config.ExposedPorts = setOf(c.Ports, "/tcp")

	case *instructions.WorkdirCommand:
		r.config.WorkingDir = c.Path
	case *instructions.UserCommand:
		r.config.User = c.User
	case *instructions.StopSignalCommand:
		r.config.StopSignal = c.Signal
	case *instructions.EntrypointCommand:
		r.config.Entrypoint = c.CmdLine
	case *instructions.CmdCommand:
		r.config.Cmd = c.CmdLine
	default:
		return fmt.Errorf("the instruction %s is not supported", command.Name())
	}
	return nil
}

// addCopy adds a COPY instruction. It must name a single source and its mode.
func (r *recipe) addCopy(c *instructions.CopyCommand) error {
	if len(c.SourcePaths) != 1 || c.From != "" {
		return fmt.Errorf("COPY to %s does not have a single source", c.DestPath)
	}
	mode, err := strconv.ParseInt(c.Chmod, 8, 64)
	if err != nil {
		return fmt.Errorf("the mode of %s: %w", c.DestPath, err)
	}

	owner := 0
	if c.Chown != "" {
		user, group, _ := strings.Cut(c.Chown, ":")
		if owner, err = strconv.Atoi(user); err != nil || user != group {
			return fmt.Errorf("the owner of %s is %q, want the same number twice", c.DestPath, c.Chown)
		}
	}
	r.copies = append(r.copies, copiedFile{
		from:  c.SourcePaths[0],
		to:    strings.TrimPrefix(filepath.ToSlash(c.DestPath), "/"),
		mode:  mode,
		owner: owner,
	})
	return nil
}

// setOf returns a set of names, each with a suffix.
func setOf(names []string, suffix string) map[string]struct{} {
	set := make(map[string]struct{})
	for _, name := range names {
		set[name+suffix] = struct{}{}
	}
	return set
}
