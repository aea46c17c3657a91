package harness

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// shim is machine code for amd64 that replaces the kernel's function clock_gettime(clock, result).
// It calls the kernel's function, whose address is at offset shimCalls. If the clock is
// CLOCK_REALTIME, it adds the seconds at offset shimAdds to the result.
var shim = []byte{
	0x57,                   // push rdi
	0x56,                   // push rsi
	0x48, 0x83, 0xec, 0x08, // sub rsp, 8
	0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, // mov rax, address
	0xff, 0xd0, // call rax
	0x48, 0x83, 0xc4, 0x08, // add rsp, 8
	0x5e,       // pop rsi
	0x5f,       // pop rdi
	0x85, 0xff, // test edi, edi
	0x75, 0x0a, // jne to ret
	0x48, 0x8b, 0x0d, 0x05, 0, 0, 0, // mov rcx, [rip+5]
	0x48, 0x01, 0x0e, // add [rsi], rcx
	0xc3,                      // ret
	0, 0, 0, 0, 0, 0, 0, 0, 0, // padding, and the seconds
}

const (
	shimCalls = 8
	shimAdds  = 40
)

// A Clock is the clock of one running server. The clock is wrong by an offset, which is zero at
// first. The server's separate process that hashes passwords keeps the right time.
type Clock struct {
	t      T
	memory *os.File
	adds   int64 // address of the offset, which is in seconds
}

// Clock takes over the clock of a server until its process ends. No setting of the kernel changes
// the time of a single process. Therefore, it replaces the function with which a Go program reads
// the kernel's clock. The replacement overwrites code that runs only once, when a program starts.
func (s *Server) Clock(t T) *Clock {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		Missing(t, "Linux on amd64, to change the clock of a process")
	}
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("taking over the clock of a server: %v", err)
		}
	}

	function, code, err := clockSymbols(s.binary)
	fail(err)
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", s.PID()), os.O_RDWR, 0)
	fail(err)
	t.Cleanup(func() { _ = memory.Close() })

	address := make([]byte, 8)
	_, err = memory.ReadAt(address, function)
	fail(err)
	patch := append([]byte{}, shim...)
	copy(patch[shimCalls:], address)
	_, err = memory.WriteAt(patch, code)
	fail(err)
	_, err = memory.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(code)), function)
	fail(err)
	return &Clock{t: t, memory: memory, adds: code + shimAdds}
}

// Set makes the clock wrong by an offset, of which only the whole seconds count.
func (c *Clock) Set(offset time.Duration) {
	c.t.Helper()
	seconds := binary.LittleEndian.AppendUint64(nil, uint64(int64(offset/time.Second)))
	if _, err := c.memory.WriteAt(seconds, c.adds); err != nil {
		c.t.Fatalf("setting a clock: %v", err)
	}
}

// clockSymbols returns the address of the variable that holds the kernel's function, and the
// address of code that is large enough for the shim.
func clockSymbols(path string) (function, code int64, err error) {
	file, err := elf.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", path, err)
	}

	for _, s := range symbols {
		switch {
		case s.Name == "runtime.vdsoClockgettimeSym":
			function = int64(s.Value)
		case strings.HasPrefix(s.Name, "runtime.rt0_go") && s.Size >= uint64(len(shim))+16:
			code = int64(s.Value+15) &^ 15
		}
	}
	if function == 0 || code == 0 {
		return 0, 0, fmt.Errorf("%s lacks the symbols of the clock", path)
	}
	return function, code, nil
}
