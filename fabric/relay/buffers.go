package relay

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// The buffer sizes of a socket. Longer messages bypass the buffers. The buffers of net/http have 4
// KiB each, which is too much for ten thousand idle sockets.
const (
	readBuffer  = 256
	writeBuffer = 512
)

// slim makes a hijacked connection use small buffers.
type slim struct{ http.ResponseWriter }

func (w slim) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, large, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early := large.Reader.Buffered() // keep the bytes that arrived with the request
	reader := bufio.NewReaderSize(io.MultiReader(io.LimitReader(large.Reader, int64(early)), conn),
		max(readBuffer, early))
	if _, err := reader.Peek(early); err != nil {
		_ = conn.Close() // nothing else owns the connection yet
		return nil, nil, err
	}
	return conn, bufio.NewReadWriter(reader, bufio.NewWriterSize(conn, writeBuffer)), nil
}
