package kinds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// load returns the built-in kinds and those in a directory.
func load(t *testing.T, dir string) *Catalog {
	t.Helper()
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBuiltin shows that the schemas and defaults of the built-in kinds are valid. Load does not check
// them.
func TestBuiltin(t *testing.T) {
	c := load(t, "")
	loaded := c.All()
	if len(loaded) != 14 {
		t.Errorf("there are %d kinds, want 14 in addition to subscribers", len(loaded))
	}
	for _, k := range append(loaded, c.Part("sip_address"), c.Part("sip_credential")) {
		if err := k.checkSchema(); err != nil {
			t.Errorf("%s: %v", k.Type, err)
		}
	}
}

// TestLoad shows that operators can add kinds as files. An invalid file is refused with the reason.
func TestLoad(t *testing.T) {
	const fax = `{"title":"Fax",
		"x-kind":{"type":"fax_line","path":"fax_lines","key":"fax_line","update":"PUT",
			"name":["name"],"address":"app","channels":["audio"]},
		"type":"object","required":["name"],"properties":{"name":{"type":"string","default":"fax"}}}`
	write := func(text string) (dir string) {
		t.Helper()
		dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "fax.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	if load(t, write(fax)).ByPath("fax_lines") == nil {
		t.Error("Load omits the kind in the file")
	}

	for _, tt := range []struct{ name, old, new, want string }{
		{"not JSON", fax, `{`, "unexpected end"},
		{"a path that exists", `"fax_lines"`, `"subscribers"`, "already"},
		{"a type that exists", `"fax_line",`, `"ai_agent",`, "already"},
		{"an invalid path", `"fax_lines"`, `"../x"`, "x-kind.path"},
		{"an invalid method", `"PUT"`, `"POST"`, "x-kind.update"},
		{"an invalid default", `"default":"fax"`, `"default":7`, "the default of name"},
		{"an unknown type", `"string"`, `"number"`, "unknown type"},
		{"an unknown property", `["name"],"properties"`, `["nome"],"properties"`, "not a property"},
		{"another file", `"type":"string",`, `"type":"string","$ref":"file:///etc/passwd",`, "cannot refer"},
	} {
		_, err := Load(write(strings.Replace(fax, tt.old, tt.new, 1)))
		if err == nil {
			t.Errorf("%s: Load: got nil, want an error", tt.name)
			continue
		}
		for _, want := range []string{"fax.json", tt.want} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: Load: got %v, want it to contain %q", tt.name, err, want)
			}
		}
	}

	if _, err := Load(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("Load of a missing directory = %v, want no error", err)
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := Load(""); err != nil {
			b.Fatal(err)
		}
	}
}
