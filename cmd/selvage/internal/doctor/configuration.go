package doctor

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/selvage/selvage/cmd/selvage/internal/config"
)

// Unreadable returns the findings for a configuration that cannot be read, one for each line of err.
func Unreadable(err error) (all []Finding) {
	for _, line := range strings.Split(err.Error(), "\n") {
		all = append(all, configured(brokenf("%s", line)))
	}
	all[len(all)-1].Remedy = "fix this first, because nothing else can be checked; `selvage config " +
		"sample` prints every key"
	return all
}

// Configuration reports the sources of the configuration, its warnings, and files that contain
// secrets but can be read by every user.
func (e *Examination) Configuration() []Finding {
	sources := sourcesOf(e.From)
	origin := finef("defaults only")
	if len(sources) > 0 {
		origin = finef("%s; `selvage config show` prints what each sets", strings.Join(sources, ", "))
	}
	all := []Finding{configured(origin)}
	for _, warning := range e.Config.Warnings() {
		found, remedy, _ := strings.Cut(warning, "; ")
		all = append(all, configured(warnedf("%s", found).withRemedy(Text(remedy))))
	}
	return append(all, readableSecrets(e.Config, e.Getenv, e.From)...)
}

// configured returns f as a finding about the whole configuration.
func configured(f Finding) Finding {
	f.Group = "Configuration"
	f.Name = "configuration"
	return f
}

// place matches the line and column at the end of an origin.
var place = regexp.MustCompile(`:\d+:\d+$`)

// sourcesOf returns the files, variables and flags that set a value, sorted.
func sourcesOf(from config.Origins) []string {
	sources := make(map[string]bool)
	for _, origin := range from {
		sources[place.ReplaceAllString(origin, "")] = true
	}
	return slices.Sorted(maps.Keys(sources))
}

// readableSecrets warns about files that contain a secret and that every user can read. A URL with
// a password counts as a secret.
func readableSecrets(c config.Config, getenv func(string) string, from config.Origins) (all []Finding) {
	for _, s := range config.Settings() {
		origin := from[s.Path]
		text := fmt.Sprint(s.Value(c))
		isSecret := s.Secret || config.Redact(text) != text
		file := place.ReplaceAllString(origin, "")
		switch {
		case !isSecret || strings.HasPrefix(origin, "--"):
			continue
		case strings.HasSuffix(origin, "_FILE"):
			file = getenv(origin)
		case file == origin:
			continue // an environment variable sets the value
		}

		// Kubernetes mounts secrets as links to files with mode 0644. Only the pod can reach their
		// directory.
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm()&0o004 == 0 || filepath.Dir(file) == "/run/secrets" {
			continue
		}

		f := warnedf("every user of this machine can read %s, which sets %s", file, s.Path).
			withRemedy(Text("chmod o-r " + file))
		f.Group = "Configuration"
		f.Name = "secrets"
		all = append(all, f)
	}
	return all
}
