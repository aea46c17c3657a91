package server

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// unmapBinary removes the code and constants of this program from the memory of the process.
// Starting touches most of them, although few are needed later. The kernel maps those again when
// they are used, from its cache of the file.
func unmapBinary() error {
	binary, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer maps.Close()

	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var from, to uintptr
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); err != nil {
			return fmt.Errorf("reading /proc/self/maps: %w", err)
		}
		if rights[1] == 'w' || !strings.HasSuffix(lines.Text(), " "+binary) {
			continue
		}
		_, _, failed := syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		if failed != 0 {
			return fmt.Errorf("unmapping %s: %w", binary, failed)
		}
	}
	return lines.Err()
}
