package openapi_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage/selvage/openapi/openapitest"
)

var parameter = regexp.MustCompile(`\{\w+\}`)

// TestComplete shows that every operation of the vendor's Call Fabric API, as listed in
// testdata/vendor.txt, is in the document or explained in docs/divergences.md.
func TestComplete(t *testing.T) {
	listed, err := os.ReadFile("testdata/vendor.txt")
	if err != nil {
		t.Fatal(err)
	}

	divergences, err := os.ReadFile("../docs/divergences.md")
	if err != nil {
		t.Fatal(err)
	}

	documented := make(map[string]bool)
	for path, item := range openapitest.Ours().Paths.Map() {
		for method := range item.Operations() {
			documented[method+" "+parameter.ReplaceAllString(path, "{}")] = true
		}
	}

	operations := strings.Split(strings.TrimSpace(string(listed)), "\n")
	if len(operations) < 100 {
		t.Fatalf("vendor.txt lists %d operations, want at least 100", len(operations))
	}
	for _, op := range operations {
		if documented[parameter.ReplaceAllString(op, "{}")] {
			continue
		}
		if !strings.Contains(string(divergences), "`"+op+"`") {
			t.Errorf("%s is not in the document, and docs/divergences.md does not say why", op)
		}
	}
}
