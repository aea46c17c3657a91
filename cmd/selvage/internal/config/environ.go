package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/selvage/selvage/internal/suggest"
)

// envPrefix is the prefix of selvage's environment variables.
const envPrefix = "SELVAGE_"

// otherVariables lists variables that belong to the Makefile, the tests and the benchmark, as do
// variables that begin with testPrefix. A server started by these programs ignores them.
var otherVariables = []string{"SELVAGE_BINARY", "SELVAGE_PAGES", "SELVAGE_BENCH_PINNED"}

const testPrefix = envPrefix + "TEST_"

// serviceLink matches the variables that Kubernetes sets in each pod for a service whose name
// begins with selvage: SELVAGE_SERVICE_HOST, SELVAGE_PORT_80_TCP and the like.
var serviceLink = regexp.MustCompile(`^SELVAGE(_.+)?_(SERVICE_HOST=|SERVICE_PORT|PORT_[0-9]+_|PORT=[a-z]+://)`)

// checkVariables rejects variables that have our prefix but match no key. It ignores variables with
// an empty value.
func checkVariables(environ []string) error {
	known := []string{"SELVAGE_CONFIG"}
	for _, s := range Settings() {
		known = append(known, s.Env(), s.Env()+"_FILE")
	}

	var errs []error
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if text == "" || !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) {
			continue
		}
		isOther := strings.HasPrefix(name, testPrefix) || slices.Contains(otherVariables, name)
		if isOther || serviceLink.MatchString(entry) {
			continue
		}
		errs = append(errs, fmt.Errorf("%s: unknown key%s", name, suggestVariable(name, known)))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// suggestVariable suggests the variable that equals name except for a missing section. If there is
// none, it suggests a variable with a similar name. It compares names without the common prefix.
func suggestVariable(name string, known []string) string {
	name = strings.TrimPrefix(name, envPrefix)
	var rest []string
	for _, k := range known {
		k = strings.TrimPrefix(k, envPrefix)
		if strings.HasSuffix(k, "__"+name) {
			return fmt.Sprintf("; did you mean %q?", envPrefix+k)
		}
		rest = append(rest, k)
	}
	return strings.Replace(suggest.Meant(name, rest), `"`, `"`+envPrefix, 1)
}
