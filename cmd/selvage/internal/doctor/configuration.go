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

// Unreadable returns what is found of a configuration that cannot be read.
func Unreadable(err error) (all []Finding) {
	for _, line := range strings.Split(err.Error(), "\n") {
		all = append(all, configured(brokenf("", "%s", line)))
	}
	all[len(all)-1].Remedy = "mend this first, nothing else can be looked at; `selvage config sample` prints every key"
	return all
}

// Configuration looks at one that could be read.
func (e *Examination) Configuration() []Finding {
	sources := sourcesOf(e.From)
	told := "the defaults alone"
	if len(sources) > 0 {
		told = strings.Join(sources, ", ") + "; `selvage config show` tells what each sets"
	}
	all := []Finding{configured(finef("%s", told))}
	for _, warning := range e.Config.Warnings() {
		found, remedy, _ := strings.Cut(warning, "; ")
		all = append(all, configured(warnedf(remedy, "%s", found)))
	}
	return append(all, readableSecrets(e.Config, e.Getenv, e.From)...)
}

func configured(f Finding) Finding {
	f.Group, f.Name = "Configuration", "configuration"
	return f
}

// place is where in a file a value stands.
var place = regexp.MustCompile(`:\d+:\d+$`)

// sourcesOf lists the files, variables and flags that set something.
func sourcesOf(from config.Origins) []string {
	all := make(map[string]bool)
	for at := range maps.Values(from) {
		all[place.ReplaceAllString(at, "")] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// readableSecrets warns of files that hold a secret and that everybody may read.
func readableSecrets(c config.Config, getenv func(string) string, from config.Origins) (all []Finding) {
	for _, s := range config.Settings() {
		at, text := from[s.Path], fmt.Sprint(s.Value(c))
		file := place.ReplaceAllString(at, "")
		switch {
		case !s.Secret && config.Redact(text) == text || strings.HasPrefix(at, "--"):
			continue
		case strings.HasSuffix(at, "_FILE"):
			file = getenv(at)
		case file == at:
			continue // a variable
		}
		// Kubernetes mounts secrets as links to files of mode 0644, in directories of the pod's own.
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm()&0o004 == 0 || filepath.Dir(file) == "/run/secrets" {
			continue
		}
		f := warnedf("chmod o-r "+file, "everybody on this machine may read %s, which sets %s", file, s.Path)
		f.Group, f.Name = "Configuration", "secrets"
		all = append(all, f)
	}
	return all
}
