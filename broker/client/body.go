package client

import "github.com/quorate/quorate/protocol"

func subscriptionOf(d *protocol.SubscriptionData) *Subscription {
	s := &Subscription{
		Topic: d.Topic, SubString: d.SubString, ExpressionType: d.ExpressionType, Tags: d.TagsSet, Version: d.SubVersion,
		ClassFilterMode: d.ClassFilterMode,
	}
	if s.ExpressionType == "" {
		s.ExpressionType = protocol.ExpressionTag
	}
	for _, c := range d.CodeSet {
		s.Codes = append(s.Codes, int64(c))
	}
	return s
}

func dataOf(s *Subscription) protocol.SubscriptionData {
	d := protocol.SubscriptionData{
		ClassFilterMode: s.ClassFilterMode, Topic: s.Topic, SubString: s.SubString, TagsSet: append([]string{}, s.Tags...),
		CodeSet: make([]int32, 0, len(s.Codes)), SubVersion: s.Version, ExpressionType: s.ExpressionType,
	}
	for _, c := range s.Codes {
		d.CodeSet = append(d.CodeSet, int32(c))
	}
	return d
}
