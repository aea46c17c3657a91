// Command build builds dist/ from src/: the browser SDK as a script to include, as an ES module and
// as a CommonJS module. It also updates the script's URL and hash in the documents that show how to
// include it.
//
// `make sdk` runs it in the directory sdk. tsc generates the type declarations (npm run types).
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/selvage/selvage/sdk"
)

// forms are the files in dist, with the options for building each of them.
var forms = map[string]api.BuildOptions{
	"selvage.js":  {Format: api.FormatIIFE, GlobalName: "Selvage"},
	"selvage.mjs": {Format: api.FormatESModule},
	"selvage.cjs": {Format: api.FormatCommonJS},
}

// documents are the documents that show how to include the script.
var documents = []string{"README.md"}

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "sdk/build:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	built, err := build(dir)
	if err != nil {
		return err
	}

	if err := os.MkdirAll(filepath.Join(dir, "dist"), 0o755); err != nil {
		return err
	}
	for name, body := range built {
		if err := os.WriteFile(filepath.Join(dir, "dist", name), body, 0o644); err != nil {
			return err
		}
	}

	for _, name := range documents {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, include(text, built["selvage.js"]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// build returns the files of dist by name. It does not write them.
func build(dir string) (map[string][]byte, error) {
	var about struct{ Name, Version, License string }
	raw, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &about); err != nil {
		return nil, fmt.Errorf("reading package.json: %w", err)
	}

	entry, err := filepath.Abs(filepath.Join(dir, "src/index.ts"))
	if err != nil {
		return nil, err
	}

	built := make(map[string][]byte)
	for name, o := range forms {
		o.EntryPoints, o.Bundle = []string{entry}, true
		o.Target, o.Charset = api.ES2022, api.CharsetUTF8
		o.MinifySyntax, o.MinifyWhitespace, o.MinifyIdentifiers = true, true, true
		o.Define = map[string]string{"__VERSION__": fmt.Sprintf("%q", about.Version)}
		o.Banner = map[string]string{"js": fmt.Sprintf("/*! %s %s, %s */", about.Name, about.Version, about.License)}

		result := api.Build(o)
		for _, m := range result.Errors {
			err = errors.Join(err, fmt.Errorf("%s:%d: %s", m.Location.File, m.Location.Line, m.Text))
		}
		if err != nil {
			return nil, err
		}
		built[name] = result.OutputFiles[0].Contents
	}
	return built, nil
}

var (
	address   = regexp.MustCompile(`/sdk/selvage\.[0-9a-f]{12}\.js`)
	integrity = regexp.MustCompile(`integrity="sha384-[^"]*"`)
)

// include updates the URL and the hash of the script in a document.
func include(document, script []byte) []byte {
	s := sdk.Describe("selvage.js", script)
	document = address.ReplaceAll(document, []byte(s.URL))
	return integrity.ReplaceAll(document, []byte(`integrity="`+s.Integrity+`"`))
}
