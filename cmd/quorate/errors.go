package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/protocol"
)

// answer is one response code in words.
type answer struct {
	code          protocol.ResponseCode
	means, remedy string
}

// answers are the codes that servers of this product give.
var answers = []answer{
	{protocol.SystemError, "the server failed, or refused for a reason that the remark gives", "read the remark; the server's log has the details"},
	{protocol.SystemBusy, "too many requests of this kind are at work", "try again, at another broker if there is one; give the broker more room"},
	{protocol.RequestCodeNotSupported, "nobody serves this request here", "docs/request-codes.md says why"},
	{protocol.FlushDiskTimeout, "the message is stored in memory; its fsync did not end in time", "treat it as not confirmed; look at the disk"},
	{protocol.SlaveNotAvailable, "the message is stored, but there is no replica to hold it too", "treat it as not confirmed; look at the replicas"},
	{protocol.FlushSlaveTimeout, "the message is stored, but not enough replicas confirmed in time", "treat it as not confirmed; look at the replicas"},
	{protocol.MessageIllegal, "topic, properties or body break a limit", "the remark names the limit; maxMessageSize is 4 MiB by default"},
	{protocol.ServiceNotAvailable, "the broker takes no messages: disk full, write error, or stopping", "the remark names the stage and the reason"},
	{protocol.NoPermission, "the broker, topic or group does not allow this", "quorate topic perm TOPIC rw; quorate group update GROUP --enable"},
	{protocol.TopicNotExist, "no broker that has the topic is registered", "quorate topic create TOPIC; or start the broker with autoCreateTopicEnable=true"},
	{protocol.PullNotFound, "there is no new message", "nothing to do: pull again"},
	{protocol.PullRetryImmediately, "messages were passed over by the filter", "nothing to do: pull again from the next offset"},
	{protocol.PullOffsetMoved, "the offset is not in the queue", "go on from the next offset in the answer"},
	{protocol.QueryNotFound, "nothing is stored under that key, or the group has no progress there", "check key, topic and time"},
	{protocol.SubscriptionParseFailed, "the filter expression cannot be read", "the remark says where"},
	{protocol.SubscriptionNotExist, "the group is not online, or does not subscribe that topic", "wait for its heartbeat; members of one group must subscribe the same"},
	{protocol.SubscriptionNotLatest, "the broker has not heard the newest subscription", "wait for the next heartbeat"},
	{protocol.SubscriptionGroupNotExist, "the group does not exist", "quorate group create GROUP; or autoCreateSubscriptionGroup=true"},
	{protocol.InvalidParameter, "a field is missing or out of bounds", "the remark names it"},
	{protocol.TransactionStateGroupWrong, "the transaction belongs to another group", "end it by the group that sent it"},
	{protocol.ConsumerNotOnline, "no consumer of that group is connected", "start one"},
	{protocol.ConsumeMsgTimeout, "the consumer did not answer in time", "look at the consumer"},
	{protocol.IllegalOperation, "the transaction is too old to be ended by its sender", "the broker asks the producer for its end"},
	{protocol.GoAway, "the server is stopping", "clients go to another server by themselves"},
}

func newErrorsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "errors [CODE]", Short: "Explain response codes", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t := newTable("code", "name", "means", "what to do")
			for _, a := range answers {
				if len(args) == 0 || args[0] == strconv.Itoa(int(a.code)) || strings.EqualFold(args[0], a.code.String()) {
					t.add(int32(a.code), a.code.String(), a.means, a.remedy)
				}
			}
			if len(t.rows) == 0 {
				return usagef("no server here answers %q (quorate errors lists what they do answer)", args[0])
			}
			return t.print(cmd)
		},
	}
	cmd.Flags().StringP("output", "o", "table", "table or json")
	return cmd
}
