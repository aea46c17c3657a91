package truststore

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// chromiums are the programs of Chromium and of browsers based on it.
var chromiums = []string{
	"brave-browser",
	"chromium",
	"chromium-browser",
	"google-chrome",
	"google-chrome-stable",
	"microsoft-edge",
}

// hasChromium reports whether Chromium or a browser based on it is installed.
func hasChromium() bool {
	return slices.ContainsFunc(chromiums, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}

// chromium returns the stores of Chromium and of browsers based on it. The store is ~/.pki/nssdb.
// If it does not exist, newer versions create $XDG_DATA_HOME/pki/nssdb instead. Snaps and flatpaks
// have their own home directories.
func (a account) chromium() []string {
	return directories("",
		a.home+"/.pki/nssdb",
		a.data+"/pki/nssdb",
		a.home+"/snap/chromium/current/.pki/nssdb",
		a.home+"/snap/chromium/current/.local/share/pki/nssdb",
		a.home+"/.var/app/*/.pki/nssdb",
		a.home+"/.var/app/*/data/pki/nssdb",
	)
}

// firstChromium returns the store to create if none exists. All versions read this store, and versions
// that also know the other directory prefer this one.
func (a account) firstChromium() string { return a.home + "/.pki/nssdb" }

// firefox returns the profiles of Firefox, including those of a snap and a flatpak.
func (a account) firefox() []string {
	bases := []string{
		a.home + "/.mozilla/firefox",
		a.config + "/mozilla/firefox",
		a.home + "/snap/firefox/common/.mozilla/firefox",
		a.home + "/.var/app/org.mozilla.firefox/.mozilla/firefox",
		a.home + "/.var/app/org.mozilla.firefox/config/mozilla/firefox",
	}
	var profiles []string
	for _, base := range bases {
		profiles = append(profiles, directories("cert9.db", base+"/*")...)
		profiles = append(profiles, directories("", namedProfiles(base+"/profiles.ini")...)...)
	}
	slices.Sort(profiles)
	return slices.Compact(profiles)
}

// namedProfiles returns the directories of the profiles that profiles.ini names. Some of them are outside
// Firefox's directory. A profile that was never used has no files yet.
func namedProfiles(ini string) (dirs []string) {
	text, err := readSmall(ini)
	if err != nil {
		return nil
	}

	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "Path=")
		if !ok {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(ini), path)
		}
		dirs = append(dirs, path)
	}

	return dirs
}

// readSmall reads at most a megabyte of a regular file. It refuses pipes and devices, because the
// process may be root while the file belongs to another user.
func readSmall(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	const maxSize = 1 << 20
	return io.ReadAll(io.LimitReader(f, maxSize))
}

// directories returns the directories that match one of the patterns. If file is not "", it returns
// only directories that contain file.
func directories(file string, patterns ...string) (found []string) {
	for _, pattern := range patterns {
		// A pattern is always valid, except perhaps if the name of a home directory contains a bracket;
		// then nothing is found.
		matches, _ := filepath.Glob(pattern)
		for _, dir := range matches {
			info, err := os.Stat(filepath.Join(dir, file))
			if err == nil && (file != "" || info.IsDir()) {
				found = append(found, dir)
			}
		}
	}
	return found
}
