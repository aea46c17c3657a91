package servers

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// A RedisCluster is a Redis Cluster of three masters, which share the slots, and their replicas.
// Tests can start and stop its nodes.
type RedisCluster struct {
	Nodes []*RedisServer // masters first, then replicas
	URL   string
}

// Cluster returns the URL of a shared cluster of three masters. The cluster has only one database,
// which is not emptied between tests. To separate its keys from those of other tests, a test adds
// ?prefix= and a name to the URL, as [Backend] does. A test that deletes all data must use
// [OwnCluster].
func Cluster(t T) string {
	t.Helper()
	if url := os.Getenv("SELVAGE_TEST_CLUSTER"); url != "" {
		return url
	}
	c, err := sharedCluster()
	check(t, err)
	return c.URL
}

var sharedCluster = sync.OnceValues(func() (*RedisCluster, error) {
	c, err := startCluster(0, nil)
	if err == nil {
		err = c.forgive("15000") // no test kills nodes of the shared cluster
	}
	return c, err
})

// forgive sets how many milliseconds a node may be silent before other nodes consider it dead. On a
// busy machine, nodes are silent for a while. The timeout is raised only after the start, because
// the start of a cluster takes about as long as its timeout.
func (c *RedisCluster) forgive(timeout string) error {
	for _, n := range c.Nodes {
		if _, err := n.cli("CONFIG", "SET", "cluster-node-timeout", timeout); err != nil {
			return err
		}
	}
	return nil
}

// OwnCluster starts a cluster that only this test uses. It has the given number of replicas for
// each master, and every node gets args as additional arguments.
func OwnCluster(t T, replicas int, args ...string) *RedisCluster {
	t.Helper()
	c, err := startCluster(replicas, args)
	check(t, err)
	t.Cleanup(c.remove)

	if replicas > 0 { // with the timeout of 2 s, a replica would replace a master that is only slow
		check(t, c.forgive("6000"))
	}
	return c
}

// CLI runs a redis-cli command on the node that stores the command's key, and returns its output.
func (c *RedisCluster) CLI(t T, args ...string) string {
	t.Helper()
	return c.Nodes[0].CLI(t, append([]string{"-c"}, args...)...)
}

func (c *RedisCluster) remove() {
	for _, n := range c.Nodes {
		n.remove()
	}
}

func startCluster(replicas int, args []string) (c *RedisCluster, err error) {
	c = &RedisCluster{}
	defer func() {
		if err != nil {
			c.remove()
		}
	}()

	var addresses []string
	for range 3 * (1 + replicas) {
		bus, err := freePort()
		if err != nil {
			return c, err
		}

		n, err := startRedis(append([]string{
			"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", "2000",
			"--cluster-require-full-coverage", "no",
			"--databases", "1", // clusters support only one
		}, args...))
		if err != nil {
			return c, err
		}

		c.Nodes = append(c.Nodes, n)
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", n.Port))
	}

	c.URL = "redis-cluster://" + strings.Join(addresses[:3], ",")
	create := append([]string{"--cluster", "create"}, addresses...)
	if _, err := c.Nodes[0].cli(
		append(create, "--cluster-replicas", strconv.Itoa(replicas), "--cluster-yes")...); err != nil {
		return c, err
	}
	return c, poll("a cluster", func() error { return c.checkComplete(replicas) })
}

// checkComplete returns an error until every node knows all slots, nodes and replicas.
func (c *RedisCluster) checkComplete(replicas int) error {
	for _, n := range c.Nodes {
		info, err := n.cli("CLUSTER", "INFO")
		if err != nil {
			return err
		}
		for _, want := range []string{"cluster_state:ok", "cluster_slots_ok:16384", "cluster_size:3",
			fmt.Sprintf("cluster_known_nodes:%d", len(c.Nodes))} {
			if !strings.Contains(info, want+"\r") {
				return fmt.Errorf("the node at port %d does not report %s:\n%s", n.Port, want, info)
			}
		}

		nodes, err := n.cli("CLUSTER", "NODES")
		if err != nil {
			return err
		}
		if got := strings.Count(nodes, " slave ") + strings.Count(nodes, ",slave "); got != 3*replicas {
			return fmt.Errorf("the node at port %d reports %d replicas, want %d", n.Port, got, 3*replicas)
		}
	}
	return nil
}
