package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"strings"
	"testing"
)

// TestCommitted shows that the committed files were built from the current source.
func TestCommitted(t *testing.T) {
	built, err := build("..")
	if err != nil {
		t.Fatal(err)
	}
	if len(built) != len(forms) {
		t.Fatalf("%d files were built, want %d", len(built), len(forms))
	}

	for name, want := range built {
		got, err := os.ReadFile("../dist/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("dist/%s differs from the source: run `make sdk`", name)
		}
	}

	for _, name := range documents {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !address.Match(text) || !integrity.Match(text) {
			t.Errorf("%s does not show how to include the script", name)
		}
		if !bytes.Equal(include(text, built["selvage.js"]), text) {
			t.Errorf("%s shows the script of another build: run `make sdk`", name)
		}
	}
}

// budget is the maximum compressed size of each file of the SDK, in bytes.
const budget = 10_000

func TestBudget(t *testing.T) {
	for name := range forms {
		body, err := os.ReadFile("../dist/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}

		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("dist/%s: %d bytes, %d compressed", name, len(body), b.Len())
		if b.Len() > budget {
			t.Errorf("dist/%s has %d bytes compressed, want at most %d", name, b.Len(), budget)
		}
		if bytes.Contains(body, []byte("require(")) || bytes.Contains(body, []byte("from\"")) ||
			strings.Contains(string(body), "import(") {
			t.Errorf("dist/%s imports a module", name)
		}
	}
}
