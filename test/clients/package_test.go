package clients

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// run runs a command and returns its output.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, faults.String())
	}
	return string(out)
}

// TestPackage shows that the packed SDK contains exactly the files that its README lists, and that
// the package can be installed and used as a module and as CommonJS.
func TestPackage(t *testing.T) {
	harness.OneBackend(t)
	needNode(t)
	dir := t.TempDir()
	var packed []struct {
		Filename string
		Files    []struct{ Path string }
	}
	output := run(t, "../../sdk", "npm", "pack", "--json", "--pack-destination", dir)
	if err := json.Unmarshal([]byte(output), &packed); err != nil {
		t.Fatalf("npm pack printed %s: %v", output, err)
	}
	if len(packed) != 1 {
		t.Fatalf("npm pack created %d packages, want 1: %v", len(packed), packed)
	}

	readme, err := os.ReadFile("../../sdk/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, listed, _ := strings.Cut(string(readme), "## What is in the package\n\n```\n")
	listed, _, _ = strings.Cut(listed, "```")
	var patterns []string
	for line := range strings.Lines(listed) {
		patterns = append(patterns, strings.Fields(line)[0])
	}
	if len(patterns) < 5 {
		t.Errorf("the README lists %q, want at least 5 files", patterns)
	}

	used := make(map[string]bool)
	for _, f := range packed[0].Files {
		i := slices.IndexFunc(patterns, func(pattern string) bool {
			matches, _ := filepath.Match(pattern, f.Path)
			return matches
		})
		if i < 0 {
			t.Errorf("%s is in the package, but not in the list of its README", f.Path)
			continue
		}
		used[patterns[i]] = true
	}
	for _, pattern := range patterns {
		if !used[pattern] {
			t.Errorf("the README lists %s, but the package does not contain it", pattern)
		}
	}

	app := filepath.Join(dir, "app")
	if err := os.Mkdir(app, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(app, "package.json"), []byte(`{"private":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, app, "npm", "install", "--offline", "--no-audit", "--no-fund", filepath.Join(dir, packed[0].Filename))

	const want = "Client Fabric FabricClient Messages Recording Recordings SelvageError " +
		"createClient keepCalls moveCall version"
	for kind, script := range map[string]string{
		"module": `import * as sdk from "@selvage/browser"
			console.log(Object.keys(sdk).filter((n) => n !== "default").sort().join(" "))`,
		"commonjs": `console.log(Object.keys(require("@selvage/browser")).sort().join(" "))`,
	} {
		if got := strings.TrimSpace(run(t, app, "node", "--input-type="+kind, "-e", script)); got != want {
			t.Errorf("imported as %s, the package exports %s, want %s", kind, got, want)
		}
	}
}

// TestTypes shows that the SDK's source and the examples in its README type-check, and that the
// committed types match the source.
func TestTypes(t *testing.T) {
	harness.OneBackend(t)
	tsc, err := filepath.Abs("../../sdk/node_modules/.bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tsc); err != nil {
		harness.Missing(t, "TypeScript (npm ci --prefix sdk)")
	}

	made := t.TempDir()
	run(t, "../../sdk", tsc, "-p", ".", "--outDir", made)

	committed := os.DirFS("../../sdk/dist/types")
	want, err := fs.Glob(os.DirFS(made), "*")
	if err != nil {
		t.Fatal(err)
	}

	if len(want) == 0 {
		t.Error("tsc wrote no types")
	}
	got, err := fs.Glob(committed, "*")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("dist/types has %v, want %v: run `make sdk`", got, want)
	}
	for _, name := range want {
		fresh, err := fs.ReadFile(os.DirFS(made), name)
		if err != nil {
			t.Fatal(err)
		}
		old, err := fs.ReadFile(committed, name)
		if err != nil || !bytes.Equal(old, fresh) {
			t.Errorf("dist/types/%s does not match the source (error %v): run `make sdk`", name, err)
		}
	}

	readme, err := os.ReadFile("../../sdk/README.md")
	if err != nil {
		t.Fatal(err)
	}

	// Join the examples into one program. First declare the names that the examples do not declare.
	program := `import { SignalWire } from "./stock"
declare const button: HTMLButtonElement, audio: HTMLAudioElement
declare const id: string, token: string, pushToken: string, address: { id: string }, room: { id: string }, call: any
declare function show(who: string, text: string): void
`
	for _, m := range regexp.MustCompile("(?s)```ts\n(.*?)```").FindAllSubmatch(readme, -1) {
		program += strings.ReplaceAll(strings.ReplaceAll(string(m[1]),
			`import { SignalWire } from "@signalwire/js"`, ""), "…)", "{})")
	}

	for _, list := range []string{`sortBy: "name" }))`, "list(address.id))", "conversations())"} {
		program = strings.ReplaceAll(program, list+" …", list+" console.log()")
	}

	dir := t.TempDir()
	files := map[string]string{
		"readme.ts": program,
		"stock.ts": "export declare function SignalWire(o: { host: string; token: string }): " +
			"Promise<{ updateToken(token: string): Promise<void>; dial(params: unknown): Promise<unknown> }>\n",
		"tsconfig.json": `{"compilerOptions":{"target":"es2022","module":"esnext","moduleResolution":"bundler",
			"lib":["es2022","dom","dom.iterable"],"types":[],"strict":true,"noEmit":true,
			"paths":{"@selvage/browser":["` + filepath.ToSlash(
			filepath.Join(filepath.Dir(tsc), "../../dist/types/index.d.ts")) + `"]}}}`,
	}

	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, tsc, "-p", dir)
}
