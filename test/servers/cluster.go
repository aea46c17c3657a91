package servers

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// A RedisCluster is a running Redis Cluster: three masters, which share the slots,
// and their replicas.
type RedisCluster struct {
	Nodes []*RedisServer // the masters first
	URL   string
}

// Cluster returns the URL of a shared cluster of three masters. A cluster has one
// database: what is in it stays, and who would empty it has [OwnCluster]. Who would
// see nothing of others adds ?prefix= and a name, as [Backend] does.
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
		err = c.forgive("15000") // nobody kills one of its nodes
	}
	return c, err
})

// forgive has nodes be silent for so many milliseconds before others take them for dead, as
// they are now and then on a machine that has much to do. A cluster that begins with it would
// take as long to begin.
func (c *RedisCluster) forgive(timeout string) error {
	for _, n := range c.Nodes {
		if _, err := n.cli("CONFIG", "SET", "cluster-node-timeout", timeout); err != nil {
			return err
		}
	}
	return nil
}

// OwnCluster starts a cluster for one test, with so many replicas for each master
// and more arguments for every node.
func OwnCluster(t T, replicas int, args ...string) *RedisCluster {
	t.Helper()
	c, err := startCluster(replicas, args)
	check(t, err)
	t.Cleanup(c.remove)
	if replicas > 0 { // which would take the place of who is only slow
		check(t, c.forgive("6000"))
	}
	return c
}

// CLI runs a command of redis-cli, on the node which has the key, and gives what
// it prints.
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
			"--databases", "1", // a cluster has no others
		}, args...))
		if err != nil {
			return c, err
		}
		c.Nodes = append(c.Nodes, n)
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", n.Port))
	}
	c.URL = "redis-cluster://" + strings.Join(addresses[:3], ",")
	create := append([]string{"--cluster", "create"}, addresses...)
	if _, err := c.Nodes[0].cli(append(create, "--cluster-replicas", strconv.Itoa(replicas), "--cluster-yes")...); err != nil {
		return c, err
	}
	return c, poll("a cluster", func() error { return c.whole(replicas) })
}

// whole reports what is missing until every node knows of every slot and node.
func (c *RedisCluster) whole(replicas int) error {
	for _, n := range c.Nodes {
		info, err := n.cli("CLUSTER", "INFO")
		if err != nil {
			return err
		}
		for _, want := range []string{"cluster_state:ok", "cluster_slots_ok:16384", "cluster_size:3",
			fmt.Sprintf("cluster_known_nodes:%d", len(c.Nodes))} {
			if !strings.Contains(info, want+"\r") {
				return fmt.Errorf("port %d has no %s:\n%s", n.Port, want, info)
			}
		}
		nodes, err := n.cli("CLUSTER", "NODES")
		if err != nil {
			return err
		}
		if got := strings.Count(nodes, " slave ") + strings.Count(nodes, ",slave "); got != 3*replicas {
			return fmt.Errorf("port %d knows of %d replicas, want %d", n.Port, got, 3*replicas)
		}
	}
	return nil
}
